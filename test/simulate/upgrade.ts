import { mkdir, readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../src/embedded/process.ts";

/** A build from before, or why there is none. */
export type OlderBuild = { root: string; commit: string; migrations: number } | { reason: string };

/** What a build is made of; its libraries are those of the present one. */
const PARTS = ["src", "jobs", "sql", "package.json"];
/** A schema that is older than this many commits is no upgrade in one step. */
const MOST_COMMITS = 1_000;

/**
 * Takes the newest build with an older schema than the present one out of the checkout's own history: the newest commit
 * with fewer migrations.
 */
export async function findOlderBuild(root: string, folder: string): Promise<OlderBuild> {
  const git = (...args: string[]) => run({ command: "git", args: ["-C", root, ...args] });
  const present = (await readdir(join(root, "sql"))).length;
  const { code, stdout, stderr } = await git("rev-list", `--max-count=${MOST_COMMITS}`, "HEAD");
  if (code !== 0) return { reason: stderr.trim().split("\n")[0] ?? "git cannot read its history" };
  for (const commit of stdout.split("\n").filter(Boolean)) {
    const { stdout: files } = await git("ls-tree", "--name-only", commit, "sql/");
    const migrations = files.split("\n").filter(Boolean).length;
    if (migrations === 0 || migrations >= present) continue;
    const older = join(folder, "older");
    await mkdir(older);
    const packed = join(folder, "older.tar");
    for (const step of [
      await git("archive", `--output=${packed}`, commit, ...PARTS),
      await run({ command: "tar", args: ["-xf", packed, "-C", older] }),
    ]) {
      if (step.code !== 0) return { reason: step.stderr.trim() };
    }
    await symlink(join(root, "node_modules"), join(older, "node_modules"));
    return { root: older, commit: commit.slice(0, 7), migrations };
  }
  return { reason: "its history holds no commit with an older schema" };
}
