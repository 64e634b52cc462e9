import { access, chmod, lchown, lstat, mkdir, readdir, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Program, run } from "./process.ts";

/** The user that PostgreSQL runs as: our own (`self`), and another one when we are root. */
export type ServerUser = { kind: "self" } | { kind: "other"; uid: number; gid: number };

/** uid and gid of no one on nearly every system: PostgreSQL's user needs an account, and this one is always there. */
const NOBODY = 65534;

const nobody = { kind: "other", uid: NOBODY, gid: NOBODY } as const;

/** Where PostgreSQL's part goes when its user cannot reach ours; a `Reach` may name another folder. */
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
 * If the cluster of a data folder is or will be, and whom the server runs as: in `dataDir` if that user can get
 * there, otherwise under the far folder in a path that spells out `dataDir`, so that each has its own. A cluster
 * keeps its place and its owner. Throws where one exists and cannot be reached any more.
 */
export async function findHome(dataDir: string, reach: Reach = {}): Promise<Home> {
  if (process.getuid?.() !== 0) return { folder: dataDir, user: { kind: "self" } };
  const far = join(reach.farFolder ?? FAR_FOLDER, await realpath(dataDir));
  for (const folder of [dataDir, far]) {
    const owner = await lstat(join(folder, "pg")).catch(() => null);
    if (owner === null) continue;
    const user = owner.uid === 0 ? nobody : ({ kind: "other", uid: owner.uid, gid: owner.gid } as const);
    if (await canEnter(user, folder)) {
      if (owner.uid === 0) await giveTo(user, join(folder, "pg"));
      return { folder, user };
    }
    throw new Error(
      `the database in ${folder} cannot be reached by ${describeUser(user)}, who would run PostgreSQL: let that user pass through the folders above it, or start roundhouse as a normal user`,
    );
  }
  if (await canEnter(nobody, dataDir)) return { folder: dataDir, user: nobody };
  await makeOpenFolder(far);
  if (await canEnter(nobody, far)) return { folder: far, user: nobody };
  throw new Error(
    `neither ${dataDir} nor ${far} can be reached by ${describeUser(nobody)}, who would run PostgreSQL: start roundhouse as a normal user`,
  );
}

/** The program as that user runs it. */
export function asUser(user: ServerUser, program: Program): Program {
  return user.kind === "self" ? program : { ...program, uid: user.uid, gid: user.gid };
}

/** Makes a folder and those above it that are missing, open for everyone to pass through whatever the umask is. */
export async function makeOpenFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) await chmod(made, 0o755);
}

/** Whom to name in a message. */
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

/** The folder itself comes last: what was interrupted is done again, since it still has its old owner. */
async function giveTo({ uid, gid }: { uid: number; gid: number }, folder: string): Promise<void> {
  const inside = await readdir(folder, { recursive: true });
  for (const path of [...inside.map((name) => join(folder, name)), folder]) await lchown(path, uid, gid);
}
