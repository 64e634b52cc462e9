import { cp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FaultKind } from "./faults.ts";
import { makeRunFolder, removeFolder } from "./run-folder.ts";
import type { HouseFaultKind } from "./truth.ts";

/** A change of a file; `from` is found exactly once in it. */
interface Edit {
  file: string;
  from: string;
  to: string;
}

/** A fault that is put into a copy of the program, to see that the simulation catches it. */
export interface Planted {
  /** What would be wrong with it. */
  about: string;
  edits: readonly Edit[];
  /**
   * What brings the fault out and is no fault itself. A second day is played with these alone, or with none: nothing may
   * be found in it, else something other than the fault was caught.
   */
  control?: readonly Edit[];
  /** What brings it out, so that it need not be waited for: what happens to servers, and what is wrong with every house. */
  faults: readonly FaultKind[];
  houseFaults: readonly HouseFaultKind[];
  /** One that shows only when everything is computed again, which a day comes to at its end. */
  showsAtEnd: boolean;
  /** Caught within moments: enough to see that catching works. */
  isQuick: boolean;
  /** What the simulation says of it: one that is caught by something else is not understood. */
  detectedBy: RegExp;
}

/** Broken builds that the simulation must catch. */
export const PLANTED: Readonly<Record<string, Planted>> = {
  "late-as-new": {
    about:
      "a round that a house held back counts as one of now, and the model learns it out of order; what lies between it and the newest is no gap any more",
    edits: [
      {
        file: "src/rounds/intake.ts",
        from: "(number ?? 0n) < (now.newestNumber ?? 0n)",
        to: "false",
      },
    ],
    control: [],
    faults: [],
    houseFaults: ["late"],
    showsAtEnd: true,
    isQuick: false,
    detectedBy: /is on time at seq \d+, after round|rounds that their house still lists are not stored/,
  },
  "gaps-forgotten": {
    about: "what is missing between two answers is noticed and not written down",
    edits: [{ file: "src/rounds/intake.ts", from: "if (gap !== null) taken.gaps.push(gap);", to: "" }],
    control: [],
    faults: ["stop all workers"],
    houseFaults: [],
    showsAtEnd: true,
    isQuick: false,
    detectedBy: /rounds that their house still lists are not stored/,
  },
  "quota-forgotten": {
    about: "a batch of calls is counted whole, whatever is left of the quota",
    edits: [
      {
        file: "sql/0019_usage.sql",
        from: "admitted := greatest(0, least(size, room));",
        to: "admitted := size;",
      },
    ],
    faults: [],
    houseFaults: [],
    showsAtEnd: false,
    isQuick: true,
    detectedBy: /used \d+ calls of \d+ in/,
  },
  "usage-lost": {
    about: "two processes that count calls of one account at once both add to what they read before",
    edits: [
      { file: "sql/0019_usage.sql", from: "q.period = this_month for update;", to: "q.period = this_month;" },
      {
        file: "sql/0019_usage.sql",
        from: "q.period = this_day for update;",
        to: "q.period = this_day;\n  perform pg_sleep(0.02);",
      },
      {
        file: "sql/0019_usage.sql",
        from: "set used = q.used + admitted where q.account_id = account and q.period = this_day;",
        to: "set used = day_before + admitted where q.account_id = account and q.period = this_day;",
      },
    ],
    faults: [],
    houseFaults: [],
    showsAtEnd: false,
    isQuick: true,
    detectedBy: /calls by the quota and \d+ by the meter's facts/,
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
    houseFaults: [],
    showsAtEnd: true,
    isQuick: false,
    detectedBy: /got \d+ answers, .* and \d+ calls are counted/,
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
    houseFaults: [],
    showsAtEnd: false,
    isQuick: true,
    detectedBy: /served a caller with the plan \w+ as one with \w+/,
  },
  "pause-forgotten": {
    about: "forecasts are issued though the pause is over, so that their round may be under way or over",
    edits: [
      {
        file: "sql/0010_guards.sql",
        from: "clock.at - i.absent_at >= i.pause_ms * interval '1 millisecond'",
        to: "false",
      },
      {
        file: "sql/0010_guards.sql",
        from: "clock_timestamp() - new.absent_at >= new.pause_ms * interval '1 millisecond'",
        to: "false",
      },
      {
        file: "src/pass/compute/issue.ts",
        from: 'return elapsedMs(absentAt, issuedAt) >= pauseMs ? "pause_over" : null;',
        to: "return null;",
      },
    ],
    faults: ["freeze Redis"],
    houseFaults: ["slow"],
    showsAtEnd: false,
    isQuick: true,
    detectedBy: /were issued \d+ ms after the next round had begun/,
  },
  "scored-twice": {
    about: "a forecast that is settled stays open and is settled again with the next round, and the database lets it",
    edits: [
      {
        file: "src/pass/compute/settle.ts",
        from: "seen.filter((forecast) => !ended.includes(forecast))",
        to: "seen.map((one) => (ended.includes(one) ? { ...one, end: null, endOrdinal: round.ordinal + 1n } : one))",
      },
      {
        file: "sql/0010_guards.sql",
        from: "where looked.reason is not null\n  order by looked.table_id, looked.settled_seq",
        to: "where false\n  order by looked.table_id, looked.settled_seq",
      },
    ],
    faults: [],
    houseFaults: [],
    showsAtEnd: false,
    isQuick: true,
    detectedBy: /is scored \d+ times/,
  },
  "commit-late": {
    about:
      "nobody looks at the clock again before a commit, so that a transaction that is held up commits its forecasts late",
    edits: [
      {
        file: "sql/0010_guards.sql",
        from: "  if reason is not null then\n    perform refuse_set(new.table_id, new.cutoff_seq, reason);\n  end if;\n",
        to: "",
      },
    ],
    control: [
      {
        file: "sql/0010_guards.sql",
        from: "    perform refuse_set(refused.table_id, refused.cutoff_seq, refused.reason);\n  end if;\n  return null;",
        to: "    perform refuse_set(refused.table_id, refused.cutoff_seq, refused.reason);\n  end if;\n  perform pg_sleep(1.2) from issued where cutoff_seq % 4 = 0 limit 1;\n  return null;",
      },
    ],
    faults: [],
    houseFaults: [],
    showsAtEnd: false,
    isQuick: false,
    detectedBy: /were committed \d+ ms after the next round had begun/,
  },
  "version-unchecked": {
    about: "a pass is written whatever happened to its table since the state was read, such as scores that were voided",
    edits: [
      {
        file: "src/pass/poll.ts",
        from: "return (passes.states.get(tableId) ?? passes.damaged.get(tableId))?.version !== version;",
        to: "return (passes.states.get(tableId) ?? passes.damaged.get(tableId)) === undefined;",
      },
      {
        file: "sql/0003_heads.sql",
        from: "on h.table_id = own.table_id and h.version = own.version",
        to: "on h.table_id = own.table_id",
      },
      {
        file: "src/pass/stores/write-store.ts",
        from: "      version = n.version,",
        to: "      version = h.version + 1,",
      },
    ],
    control: [],
    faults: [],
    houseFaults: ["lie"],
    showsAtEnd: true,
    isQuick: false,
    detectedBy: /verify: .*score/,
  },
  "seq-for-ordinal": {
    about:
      "the rounds of a window are counted by the seq of what was stored, so that a late round in between ends it early",
    edits: [
      {
        file: "src/pass/compute/settle.ts",
        from: "round.ordinal >= forecast.endOrdinal",
        to: "round.seq - forecast.cutoffSeq >= forecast.endOrdinal - forecast.cutoffOrdinal",
      },
      {
        file: "sql/0010_guards.sql",
        from: "s.cutoff_ordinal + s.horizons[u.forecast_seq - s.first_seq + 1] is distinct from j.settled_ordinal",
        to: "false",
      },
    ],
    control: [],
    faults: [],
    houseFaults: ["late"],
    showsAtEnd: true,
    isQuick: false,
    detectedBy: /verify: .*"(?:score|forecast)"/,
  },
  "chain-broken": {
    about: "every forecast of a set is chained to the set before, and not to the forecast before it",
    edits: [
      {
        file: "src/pass/compute/issue.ts",
        from: "last = forecastHash(\n      last,",
        to: "last = forecastHash(\n      set.prevHash,",
      },
    ],
    faults: [],
    houseFaults: [],
    showsAtEnd: true,
    isQuick: false,
    detectedBy: /verify: .*"forecast"/,
  },
  "deposit-by-one": {
    about: "a deposit is credited by what the first endpoint of the chain responds, whatever the second one does",
    edits: [
      {
        file: "src/topups/usdt/watch.ts",
        from: "const views = receipts.map((receipt, at) => viewOf(deposit, receipt, heads[at]?.number ?? -1n));\n  const decision",
        to: "const views = receipts.slice(0, 1).map((receipt, at) => viewOf(deposit, receipt, heads[at]?.number ?? -1n));\n  const decision",
      },
    ],
    control: [],
    faults: ["lie about deposits"],
    houseFaults: [],
    showsAtEnd: true,
    isQuick: false,
    detectedBy: /paid \d+ micro-dollars, and \d+ are credited/,
  },
  "paid-forgotten": {
    about: "an order whose state the payment app does not report counts as not paid",
    edits: [
      {
        file: "src/topups/binance-pay/settle.ts",
        from: "    const askInSeconds = order.isOver ? SELDOM_SECONDS : SOON_SECONDS;\n",
        to: '    await endOrder(sql, order, { state: "rejected", reason: "no response", providerStatus: null });\n    return { closed: 1 };\n    const askInSeconds = order.isOver ? SELDOM_SECONDS : SOON_SECONDS;\n',
      },
    ],
    control: [],
    faults: ["stop payment app"],
    houseFaults: [],
    showsAtEnd: true,
    isQuick: false,
    detectedBy: /a payment is not credited/,
  },
  "clock-forgotten": {
    about: "a worker whose clock is wrong works on, and takes every schedule along",
    edits: [{ file: "src/queue/clock.ts", from: "if (wrong.length === 0) return null;", to: "return null;" }],
    faults: ["start worker with wrong clock"],
    houseFaults: [],
    showsAtEnd: false,
    isQuick: false,
    detectedBy: /was started with a wrong clock, and works/,
  },
};

/** Makes a copy of the program with these edits; `remove` takes it away again. */
export async function plant(root: string, edits: readonly Edit[]): Promise<{ root: string; remove(): Promise<void> }> {
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
