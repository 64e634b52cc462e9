import { access, chmod, lchown, lstat, mkdir, readdir, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Program, run } from "./process.ts";

/** The user that PostgreSQL runs as: our own (`self`), and another one when we are root. */
export type ServerUser = { kind: "self" } | { kind: "other"; uid: number; gid: number };

/** The user without rights on nearly every system: PostgreSQL needs an account, and this one always exists. */
const UNPRIVILEGED = { kind: "other", uid: 65534, gid: 65534 } as const;

/** The folder of PostgreSQL if its user cannot reach the data folder; a `Reach` may name another one. */
const FAR_FOLDER = "/var/lib/roundhouse";

/** What a test may change. */
export interface Reach {
  farFolder?: string;
}

/** A place for the cluster and the user who can work there. */
export interface Home {
  folder: string;
  user: ServerUser;
}

/**
 * Finds the place of the cluster of a data folder, and the user that the server runs as: in `dataDir` if that user can
 * reach it, otherwise below the far folder in a path that contains `dataDir`, so that each has its own. A cluster keeps its
 * place and its owner.
 * @throws Error if a cluster exists and cannot be reached any more.
 */
export async function findHome(dataDir: string, reach: Reach = {}): Promise<Home> {
  if (process.getuid?.() !== 0) return { folder: dataDir, user: { kind: "self" } };
  const far = join(reach.farFolder ?? FAR_FOLDER, await realpath(dataDir));
  for (const folder of [dataDir, far]) {
    const owner = await lstat(join(folder, "pg")).catch(() => null);
    if (owner === null) continue;
    const user = owner.uid === 0 ? UNPRIVILEGED : ({ kind: "other", uid: owner.uid, gid: owner.gid } as const);
    if (await canEnter(user, folder)) {
      if (owner.uid === 0) await giveTo(user, join(folder, "pg"));
      return { folder, user };
    }
    throw new Error(
      `the database in ${folder} cannot be reached by ${describeUser(user)}, who would run PostgreSQL: let that user pass through the folders above it, or start roundhouse as a normal user`,
    );
  }
  if (await canEnter(UNPRIVILEGED, dataDir)) return { folder: dataDir, user: UNPRIVILEGED };
  await makeOpenFolder(far);
  if (await canEnter(UNPRIVILEGED, far)) return { folder: far, user: UNPRIVILEGED };
  throw new Error(
    `neither ${dataDir} nor ${far} can be reached by ${describeUser(UNPRIVILEGED)}, who would run PostgreSQL: start roundhouse as a normal user`,
  );
}

/** The program as that user runs it. */
export function asUser(user: ServerUser, program: Program): Program {
  return user.kind === "self" ? program : { ...program, uid: user.uid, gid: user.gid };
}

/** Creates a folder and its missing parents, which everyone may pass through, whatever the umask is. */
export async function makeOpenFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) await chmod(made, 0o755);
}

/** The user, for a message. */
export function describeUser(user: ServerUser): string {
  return `user ${user.kind === "self" ? process.getuid?.() : user.uid}`;
}

async function canEnter(user: ServerUser, folder: string): Promise<boolean> {
  const enter = { command: "/bin/sh", args: ["-c", 'cd "$1"', "sh", folder], cwd: "/" };
  return (
    (await access(folder).then(
      () => true,
      () => false,
    )) && (await run(asUser(user, enter))).code === 0
  );
}

/** The folder itself is last: after an interruption it still has its old owner, so everything is done again. */
async function giveTo({ uid, gid }: { uid: number; gid: number }, folder: string): Promise<void> {
  const inside = await readdir(folder, { recursive: true });
  for (const path of [...inside.map((name) => join(folder, name)), folder]) await lchown(path, uid, gid);
}
