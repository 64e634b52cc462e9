import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A fault that is put into a copy of the program, to see that the simulation catches it. */
interface Planted {
  /** What would be wrong with it. */
  about: string;
  /** `from` is found exactly once in its file. */
  edits: readonly { file: string; from: string; to: string }[];
}

/** Broken builds that the simulation must catch. */
export const PLANTED: Readonly<Record<string, Planted>> = {
  "late-as-new": {
    about: "a round that a house held back counts as one of now, and the model learns it out of order",
    edits: [
      {
        file: "src/rounds/take-in.ts",
        from: "(numberOf(round.roundId) ?? 0n) < (now.newestNumber ?? 0n)",
        to: "false",
      },
    ],
  },
  "gaps-forgotten": {
    about: "what is missing between two answers is noticed and not written down",
    edits: [{ file: "src/rounds/take-in.ts", from: "if (gap !== null) taken.gaps.push(gap);", to: "" }],
  },
  "quota-forgotten": {
    about: "a batch of calls is counted whole, whatever is left of the quota",
    edits: [
      {
        file: "sql/0012_single_runs.sql",
        from: "admitted := greatest(0, least(size, room));",
        to: "admitted := size;",
      },
    ],
  },
  "pause-forgotten": {
    about: "forecasts are issued though the pause is over, so that their round may be under way or over",
    edits: [
      { file: "sql/0006_forecasts.sql", from: "clock_timestamp() - cutoff.absent_at >= pause", to: "false" },
      {
        file: "src/forecasts/issue-store.ts",
        from: "where t.last_polled_round_at > clock_timestamp() - t.pause_ms * interval '1 millisecond'",
        to: "where true",
      },
      {
        file: "src/forecasts/issue-store.ts",
        from: "and newest.absent_at > clock_timestamp() - t.pause_ms * interval '1 millisecond'",
        to: "and newest.absent_at is not null",
      },
    ],
  },
};

/** Makes a copy of the program with one of the faults in it; `remove` takes it away again. */
export async function plant(root: string, name: string): Promise<{ root: string; remove(): Promise<void> }> {
  const planted = PLANTED[name];
  if (planted === undefined) {
    throw new Error(`there is no planted fault ${JSON.stringify(name)}; there are ${Object.keys(PLANTED).join(", ")}`);
  }
  const copy = await mkdtemp(join(tmpdir(), "roundhouse-planted-"));
  for (const part of ["src", "jobs", "sql", "package.json"])
    await cp(join(root, part), join(copy, part), { recursive: true });
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  for (const { file, from, to } of planted.edits) {
    const path = join(copy, file);
    const text = await readFile(path, "utf8");
    if (text.split(from).length !== 2) {
      throw new Error(`expected ${JSON.stringify(from)} once in ${file}; the planted fault ${name} is outdated`);
    }
    await writeFile(
      path,
      text.replace(from, () => to),
    );
  }
  return { root: copy, remove: () => rm(copy, { recursive: true, force: true }) };
}
