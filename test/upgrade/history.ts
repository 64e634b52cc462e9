import { access, mkdir, readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../src/embedded/process.ts";
import { UsageError } from "../../src/errors.ts";

/** A build from before, in a folder of its own with the libraries of the present one. */
export interface OlderBuild {
  root: string;
  commit: string;
  /** Names of its migrations; all of them are files of the present one, unchanged. */
  migrations: string[];
}

const PARTS = ["src", "jobs", "sql", "package.json"];

/** Why the history cannot be read, or null where it can. */
export async function historyProblem(root: string): Promise<string | null> {
  try {
    await access(join(root, ".git"));
  } catch {
    return "older builds are taken from the checkout's history, and this is no checkout; clone the repository";
  }
  const { code, stdout } = await git(root, "rev-parse", "--is-shallow-repository");
  if (code !== 0) return "older builds are taken from the checkout's history, and git cannot read it";
  if (stdout.trim() !== "true") return null;
  return "older builds are taken from the checkout's history, and this is a shallow clone; run `git fetch --unshallow`";
}

/**
 * Unpacks an older build: `first`, the first one with an API whose migrations all are as they still stand (a schema made
 * by one before that cannot be brought to this one), `previous`, the newest with fewer migrations than now, or a commit.
 * @throws UsageError where the history does not hold it
 */
export async function unpackOlder(root: string, which: string, folder: string): Promise<OlderBuild> {
  const problem = await historyProblem(root);
  if (problem !== null) throw new UsageError(problem);
  const builds = await listBuilds(root);
  const present = (await readdir(join(root, "sql"))).length;
  const older = builds.filter(({ migrations }) => migrations.length < present);
  const build =
    which === "first"
      ? older[0]
      : which === "previous"
        ? older.at(-1)
        : older.find(({ commit }) => commit.startsWith(which));
  if (build === undefined) {
    const known = older.map(({ commit, migrations }) => `${commit.slice(0, 7)} (${migrations.length} migrations)`);
    throw new UsageError(
      `there is no build ${which} from which this one can be reached; there are ${known.join(", ")}`,
    );
  }
  const into = join(folder, "older");
  await mkdir(into);
  const packed = join(folder, "older.tar");
  for (const step of [
    await git(root, "archive", `--output=${packed}`, build.commit, ...PARTS),
    await run({ command: "tar", args: ["-xf", packed, "-C", into] }),
  ]) {
    if (step.code !== 0) throw new Error(`the build ${build.commit} cannot be unpacked: ${step.stderr.trim()}`);
  }
  await symlink(join(root, "node_modules"), join(into, "node_modules"));
  return { root: into, ...build };
}

/** Commits that changed the schema, oldest first, of which every migration still stands as it was, and that have an API. */
async function listBuilds(root: string): Promise<{ commit: string; migrations: string[] }[]> {
  const { stdout: commits } = await git(root, "rev-list", "--reverse", "HEAD", "--", "sql");
  const names = (await readdir(join(root, "sql"))).toSorted();
  const { stdout: hashes } = await git(root, "hash-object", ...names.map((name) => join(root, "sql", name)));
  const now = new Map(
    hashes
      .trim()
      .split("\n")
      .map((hash, at) => [names[at], hash] as const),
  );
  const builds: { commit: string; migrations: string[] }[] = [];
  for (const commit of commits.trim().split("\n")) {
    const { stdout: tree } = await git(root, "ls-tree", commit, "sql/", "src/cli/api.ts");
    const files = tree
      .trim()
      .split("\n")
      .map((line) => line.split(/\s+/))
      .map(([, , hash = "", path = ""]) => ({ hash, name: path.replace("sql/", "") }));
    const migrations = files.filter(({ name }) => name.endsWith(".sql"));
    if (migrations.length === files.length || migrations.some(({ hash, name }) => now.get(name) !== hash)) continue;
    builds.push({ commit, migrations: migrations.map(({ name }) => name.replace(/\.sql$/, "")) });
  }
  return builds;
}

function git(root: string, ...args: string[]) {
  return run({ command: "git", args: ["-C", root, ...args] });
}
