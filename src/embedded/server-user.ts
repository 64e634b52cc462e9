import { access, chmod, lchown, lstat, mkdir, readdir, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { findPrograms, type Program, programOf, run } from "./process.ts";

/**
 * Whom PostgreSQL runs as, since it refuses to run as root: `self`, where we are not root; `namespace`, a user
 * namespace in which root's own processes look like somebody else's, so that files stay root's; `other`, another
 * user, where that is not allowed.
 */
export type ServerUser =
  { kind: "self" } | { kind: "namespace"; words: string[] } | { kind: "other"; uid: number; gid: number };

/**
 * Nobody's number on nearly every system. PostgreSQL wants its user to have an account, and this one is always there.
 */
const NOBODY = 65534;

/** Where PostgreSQL's part goes when its user cannot reach ours; a `Reach` may name another folder. */
const FAR_FOLDER = "/var/lib/roundhouse";

/** What a test may change: that namespaces are refused, and where the far folder is. */
export interface Reach {
  namespaces?: boolean;
  farFolder?: string;
}

/** A place for the cluster and the user who can work there. */
export interface Home {
  folder: string;
  user: ServerUser;
}

/**
 * Where the cluster of a data folder is or will be, and whom the server runs as: in `dataDir` if that user can get
 * there, otherwise under the far folder in a path that spells out `dataDir`, so that each has its own. A cluster
 * keeps its place and its owner. Throws where one exists and cannot be reached any more.
 */
export async function findHome(dataDir: string, reach: Reach = {}): Promise<Home> {
  if (process.getuid?.() !== 0) return { folder: dataDir, user: { kind: "self" } };
  const far = join(reach.farFolder ?? FAR_FOLDER, await realpath(dataDir));
  for (const folder of [dataDir, far]) {
    const owner = await lstat(join(folder, "pg")).catch(() => null);
    if (owner === null) continue;
    const user =
      owner.uid === 0 ? await chooseUser(reach) : ({ kind: "other", uid: owner.uid, gid: owner.gid } as const);
    if (await canEnter(user, folder)) {
      // Made in a namespace, where these are refused now.
      if (owner.uid === 0 && user.kind === "other") await giveTo(user, join(folder, "pg"));
      return { folder, user };
    }
    throw new Error(
      `the database in ${folder} cannot be reached by ${describeUser(user)}, who would run PostgreSQL: let that user pass through the folders above it, or start roundhouse as a normal user`,
    );
  }
  const user = await chooseUser(reach);
  if (await canEnter(user, dataDir)) return { folder: dataDir, user };
  await makeOpenFolder(far);
  if (await canEnter(user, far)) return { folder: far, user };
  throw new Error(
    `neither ${dataDir} nor ${far} can be reached by ${describeUser(user)}, who would run PostgreSQL: start roundhouse as a normal user`,
  );
}

/** The program as that user runs it. */
export function asUser(user: ServerUser, program: Program): Program {
  if (user.kind === "self") return program;
  if (user.kind === "other") return { ...program, uid: user.uid, gid: user.gid };
  return programOf([...user.words, program.command, ...program.args], placeOf(program));
}

/** Makes a folder and those above it that are missing, open for everyone to pass through whatever the umask is. */
export async function makeOpenFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) await chmod(made, 0o755);
}

/** Whom to name in a message. */
export function describeUser(user: ServerUser): string {
  if (user.kind === "self") return `user ${process.getuid?.()}`;
  return user.kind === "namespace" ? "root without its powers" : `user ${user.uid}`;
}

async function chooseUser({ namespaces = true }: Reach): Promise<ServerUser> {
  const unshare = namespaces ? (await findPrograms(["unshare"])).get("unshare") : undefined;
  if (unshare !== undefined) {
    const words = [unshare, "--user", `--map-user=${NOBODY}`, `--map-group=${NOBODY}`, "--"];
    // Docker's default seccomp profile and a plain chroot refuse it, older util-linux does not know the options.
    const { code } = await run(programOf([...words, "/bin/sh", "-c", ":"]));
    if (code === 0) return { kind: "namespace", words };
  }
  return { kind: "other", uid: NOBODY, gid: NOBODY };
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

function placeOf({ command: _command, args: _args, ...place }: Program): Omit<Program, "command" | "args"> {
  return place;
}
