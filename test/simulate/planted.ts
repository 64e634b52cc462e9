import { cp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FaultKind } from "./faults.ts";
import { makeRunFolder, removeFolder } from "./run-folder.ts";
import type { HouseFaultKind } from "./truth.ts";

/** A change of a file, in which `from` occurs exactly once. */
interface Edit {
  file: string;
  from: string;
  to: string;
}

/** A fault that is planted in a copy of the program, to prove that the simulation detects it. */
export interface Planted {
  /** What the program then does wrong. */
  about: string;
  edits: readonly Edit[];
  /**
   * Edits that trigger the fault but are no fault themselves. If given, a second day runs with these alone and must find
   * nothing; otherwise something other than the planted fault was detected.
   */
  control?: readonly Edit[];
  /** Faults of servers and houses that trigger it, so that it is detected early. */
  faults: readonly FaultKind[];
  houseFaults: readonly HouseFaultKind[];
  /** Whether only the recomputation at the end of a day detects it. */
  showsAtEnd: boolean;
  /** Whether it is detected within seconds; `--planted all --short` runs only these. */
  isQuick: boolean;
  /** The failure by which the simulation must detect it; another failure does not count. */
  detectedBy: RegExp;
}

/** The planted faults that the simulation must detect. */
export const PLANTED: Readonly<Record<string, Planted>> = {
  "late-as-new": {
    about:
      "a round that its house listed late counts as a current one: the model learns it out of order, and the rounds between it and the newest are no longer a gap",
    edits: [
      {
        file: "src/rounds/intake.ts",
        from: "number !== null && now.newestNumber !== null && number <= now.newestNumber",
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
    about: "rounds that are missing between two responses are detected but not stored as a gap",
    edits: [{ file: "src/rounds/intake.ts", from: "if (gap !== null) taken.gaps.push(gap);", to: "" }],
    control: [],
    faults: ["stop all workers"],
    houseFaults: [],
    showsAtEnd: true,
    isQuick: false,
    detectedBy: /rounds that their house still lists are not stored/,
  },
  "quota-forgotten": {
    about: "a batch of calls is admitted completely, even if fewer calls of the quota are left",
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
    about: "two processes that count calls of one account concurrently overwrite each other's count",
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
    about: "a call that cannot be counted is served, and so is free",
    edits: [
      {
        file: "src/api/metering.ts",
        from: 'throw new ApiError("temporarily_unavailable", { cause,',
        to: 'if (cause !== null) return { refusal: null, quota: null };\n        throw new ApiError("temporarily_unavailable", { cause,',
      },
    ],
    faults: ["disconnect PostgreSQL"],
    houseFaults: [],
    showsAtEnd: true,
    isQuick: false,
    detectedBy: /got \d+ responses, .* and \d+ calls are counted/,
  },
  "plans-mixed": {
    about: "a response that was built for one plan is cached and served to callers of other plans",
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
    about: "forecasts are issued after the pause is over, when their round may have begun or ended",
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
        from: "absentAt !== null && elapsedMs(absentAt, issuedAt) < head.pauseMs",
        to: "absentAt !== null",
      },
    ],
    faults: ["freeze Redis"],
    houseFaults: ["slow"],
    showsAtEnd: false,
    isQuick: true,
    detectedBy: /were issued \d+ ms after the next round had begun/,
  },
  "scored-twice": {
    about: "a settled forecast stays open and is settled again by the next round, and the database accepts it",
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
    about: "the clock is not checked again before a commit, so that a delayed transaction commits its forecasts late",
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
    about: "a pass is written although its table has changed since the state was read, such as by voided scores",
    edits: [
      {
        file: "src/pass/prepare-states.ts",
        from: "return (passes.states.get(tableId) ?? passes.damaged.get(tableId))?.version !== version;",
        to: "return (passes.states.get(tableId) ?? passes.damaged.get(tableId)) === undefined;",
      },
      {
        file: "src/pass/read-poll.ts",
        from: "return isSkipped || loaded >= version ? [] : [tableId];",
        to: "return isSkipped || loaded >= 0n ? [] : [tableId];",
      },
      {
        file: "sql/0003_heads.sql",
        from: "on h.table_id = own.table_id and h.version = own.version",
        to: "on h.table_id = own.table_id",
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
      "the rounds of a window are counted by seq instead of ordinal, so that a late round in between ends it early",
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
    about: "every forecast of a set is chained to the previous set instead of the previous forecast",
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
    about: "a deposit is credited by the response of the first endpoint of the chain, without the second",
    edits: [
      {
        file: "src/topups/usdt/watch.ts",
        from: "const views = evidence.map(({ view }) => view);\n  const decision",
        to: "const views = evidence.slice(0, 1).map(({ view }) => view);\n  const decision",
      },
    ],
    control: [],
    faults: ["false deposits"],
    houseFaults: [],
    showsAtEnd: true,
    isQuick: false,
    detectedBy: /paid \d+ micro-dollars, but \d+ are credited/,
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
    about: "a worker with a wrong clock continues to work and shifts every schedule",
    edits: [{ file: "src/queue/clock.ts", from: "if (wrong.length === 0) return null;", to: "return null;" }],
    faults: ["start worker with wrong clock"],
    houseFaults: [],
    showsAtEnd: false,
    isQuick: false,
    detectedBy: /was started with a wrong clock and is working/,
  },
};

/** Copies the program and applies the edits; `remove` deletes the copy. */
export async function plant(root: string, edits: readonly Edit[]): Promise<{ root: string; remove(): Promise<void> }> {
  const { folder: copy, close } = await makeRunFolder("planted");
  for (const part of ["src", "jobs", "sql", "package.json"])
    await cp(join(root, part), join(copy, part), { recursive: true });
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  for (const { file, from, to } of edits) {
    const path = join(copy, file);
    const text = await readFile(path, "utf8");
    if (text.split(from).length !== 2) {
      throw new Error(`expected ${JSON.stringify(from)} once in ${file}; update the planted edit`);
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
