import { cp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FaultKind } from "./faults.ts";
import { makeRunFolder, removeFolder } from "./leftovers.ts";
import type { TroubleKind } from "./truth.ts";

/** A fault that is put into a copy of the program, to see that the simulation catches it. */
export interface Planted {
  /** What would be wrong with it. */
  about: string;
  /** `from` is found exactly once in its file. */
  edits: readonly { file: string; from: string; to: string }[];
  /** What brings it out, so that it need not be waited for: what happens to servers, and what is wrong with every house. */
  faults: readonly FaultKind[];
  troubles: readonly TroubleKind[];
  /** One that shows only when everything is computed again, which a day comes to at its end. */
  showsAtEnd: boolean;
  /** Caught within moments: enough to see that catching works. */
  isQuick: boolean;
  /** What the simulation says of it: one that is caught by something else is not understood. */
  caughtBy: RegExp;
}

/** Broken builds that the simulation must catch. */
export const PLANTED: Readonly<Record<string, Planted>> = {
  "late-as-new": {
    about:
      "a round that a house held back counts as one of now, and the model learns it out of order; what lies between it and the newest is no gap any more",
    edits: [
      {
        file: "src/rounds/take-in.ts",
        from: "(numberOf(round.roundId) ?? 0n) < (now.newestNumber ?? 0n)",
        to: "false",
      },
    ],
    faults: [],
    troubles: ["late"],
    showsAtEnd: true,
    isQuick: false,
    caughtBy: /is on time at seq \d+, after round|rounds that their house still lists are not stored/,
  },
  "gaps-forgotten": {
    about: "what is missing between two answers is noticed and not written down",
    edits: [{ file: "src/rounds/take-in.ts", from: "if (gap !== null) taken.gaps.push(gap);", to: "" }],
    faults: ["start worker with wrong clock"],
    troubles: [],
    showsAtEnd: true,
    isQuick: false,
    caughtBy: /rounds that their house still lists are not stored/,
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
    faults: [],
    troubles: [],
    showsAtEnd: false,
    isQuick: true,
    caughtBy: /used \d+ calls of \d+ in/,
  },
  "usage-lost": {
    about: "two processes that count calls of one account at once both add to what they read before",
    edits: [
      { file: "sql/0012_single_runs.sql", from: "q.period = this_month for update;", to: "q.period = this_month;" },
      {
        file: "sql/0012_single_runs.sql",
        from: "q.period = this_day for update;",
        to: "q.period = this_day;\n  perform pg_sleep(0.02);",
      },
      {
        file: "sql/0012_single_runs.sql",
        from: "set used = q.used + admitted where q.account_id = account and q.period = this_day;",
        to: "set used = day_before + admitted where q.account_id = account and q.period = this_day;",
      },
    ],
    faults: [],
    troubles: [],
    showsAtEnd: false,
    isQuick: true,
    caughtBy: /calls by the quota and \d+ by the meter's facts/,
  },
  "uncounted-in-outage": {
    about: "a call that cannot be counted is answered all the same, and so is free",
    edits: [
      {
        file: "src/api/metering.ts",
        from: 'throw new ApiError("temporarily_unavailable", { cause,',
        to: 'if (cause !== null) return { refusal: null, quota: null };\n        throw new ApiError("temporarily_unavailable", { cause,',
      },
    ],
    faults: ["cut PostgreSQL"],
    troubles: [],
    showsAtEnd: true,
    isQuick: false,
    caughtBy: /got \d+ answers, .* and \d+ calls are counted/,
  },
  "plans-mixed": {
    about: "an answer that was made for a caller of one plan is kept and given to those of others",
    edits: [
      {
        file: "src/api/fragments.ts",
        from: "isSame(found.of, of) &&",
        to: "found.of[1] === name &&",
      },
    ],
    faults: [],
    troubles: [],
    showsAtEnd: false,
    isQuick: true,
    caughtBy: /answered a caller with the plan \w+ as one with \w+/,
  },
  "pause-forgotten": {
    about: "forecasts are issued though the pause is over, so that their round may be under way or over",
    edits: [
      { file: "sql/0036_ended_windows.sql", from: "now.at - cutoff.absent_at >= table_now.pause", to: "false" },
      {
        file: "src/forecasts/issue/tables-to-issue-store.ts",
        from: "where t.last_polled_round_at > clock_timestamp() - t.pause_ms * interval '1 millisecond'",
        to: "where true",
      },
      {
        file: "src/forecasts/issue/tables-to-issue-store.ts",
        from: "and newest.absent_at > clock_timestamp() - t.pause_ms * interval '1 millisecond'",
        to: "and newest.absent_at is not null",
      },
    ],
    faults: ["freeze Redis"],
    troubles: ["slow"],
    showsAtEnd: false,
    isQuick: true,
    caughtBy: /was issued \d+ ms after the next round had begun/,
  },
  "scored-twice": {
    about: "a forecast that is scored stays open, and is scored again whenever its table is",
    edits: [
      {
        file: "src/forecasts/score/score-store.ts",
        from: "table_id, forecast_seq, 1, model,",
        to: "table_id, forecast_seq, 1 + (select count(*) from scores s where s.table_id = judged.table_id and s.forecast_seq = judged.forecast_seq), model,",
      },
      { file: "src/forecasts/score/score-store.ts", from: "where o.table_id = judged.table_id", to: "where false" },
      { file: "src/forecasts/score/score-store.ts", from: "and o.seq = judged.forecast_seq`;", to: "`;" },
    ],
    faults: [],
    troubles: [],
    showsAtEnd: false,
    isQuick: true,
    caughtBy: /is scored \d+ times/,
  },
  "chain-broken": {
    about: "of several forecasts that are issued at once only the first is chained to the one before it",
    edits: [{ file: "src/forecasts/issue/prepare-forecasts.ts", from: "    prevHash = hash;\n", to: "" }],
    faults: [],
    troubles: [],
    showsAtEnd: true,
    isQuick: false,
    caughtBy: /verify: .*"forecast"/,
  },
  "clock-forgotten": {
    about: "a worker whose clock is wrong works on, and takes every schedule along",
    edits: [{ file: "src/queue/clock.ts", from: "if (wrong.length === 0) return null;", to: "return null;" }],
    faults: ["start worker with wrong clock"],
    troubles: [],
    showsAtEnd: false,
    isQuick: false,
    caughtBy: /was started with a wrong clock, and works/,
  },
};

/** Makes a copy of the program with one of the faults in it; `remove` takes it away again. */
export async function plant(root: string, { edits }: Planted): Promise<{ root: string; remove(): Promise<void> }> {
  const { folder: copy, close } = await makeRunFolder("planted");
  for (const part of ["src", "jobs", "sql", "package.json"])
    await cp(join(root, part), join(copy, part), { recursive: true });
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  for (const { file, from, to } of edits) {
    const path = join(copy, file);
    const text = await readFile(path, "utf8");
    if (text.split(from).length !== 2) {
      throw new Error(`expected ${JSON.stringify(from)} once in ${file}; what is planted there is outdated`);
    }
    await writeFile(
      path,
      text.replace(from, () => to),
    );
  }
  return {
    root: copy,
    async remove() {
      await removeFolder(copy);
      close();
    },
  };
}
