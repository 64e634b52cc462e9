import { joinPasses } from "../../src/pass/compute/join.ts";
import { pass } from "../../src/pass/compute/pass.ts";
import type { PassResponse, ReadResponse } from "../../src/pass/compute/response.ts";
import type { PassResult, PassState, PassTime } from "../../src/pass/compute/state.ts";
import { emptyPassState } from "../support/passes.ts";
import { tableOf, PAUSE_MS, type Given, type History } from "./histories.ts";
import { Shelf } from "./shelf.ts";

/** Passes of one table, the rows they wrote, and the state they have in memory. */
export interface Run {
  shelf: Shelf;
  state: PassState;
}

export function begin(roundIds: History["roundIds"]): Run {
  const state = emptyPassState(tableOf(roundIds), { pauseMs: PAUSE_MS });
  return { shelf: new Shelf(state), state };
}

const AT: Omit<PassTime, "issuedAt"> = { tables: 1, maySettle: true, mayIssue: true };

/** Runs one pass and keeps its rows. */
export function step(
  run: Run,
  { response, issuedAt }: Pick<Given, "response" | "issuedAt">,
  at: Partial<PassTime> = {},
): PassResult {
  // a poller leaves a response unread while older ones wait
  const given = response.from === "poll" && run.state.hasUnread ? { ...response, read: null } : response;
  const result = pass(run.state, given, { ...AT, issuedAt, mayIssue: response.from === "poll", ...at });
  run.shelf.keep(result.rows);
  run.state = result.state;
  return result;
}

/** Reads every payload that waits, oldest first, so many in one transaction. */
export function readWaiting(
  run: Run,
  reads: ReadonlyMap<string, ReadResponse>,
  issuedAt: string,
  { atOnce = 1, ...at }: Partial<PassTime> & { atOnce?: number } = {},
): void {
  for (;;) {
    const unread = run.shelf.unread();
    const results: PassResult[] = [];
    let { state } = run;
    for (const [place, payload] of unread.slice(0, atOnce).entries()) {
      const { requestedAt, receivedAt, sha256, previousRequestedAt } = payload;
      const earlier = results.at(-1)?.rows.marks[0];
      const followsUseless =
        earlier === undefined
          ? run.shelf.followsUseless(receivedAt)
          : earlier.state === "refused" || earlier.items === 0;
      const response: PassResponse = {
        from: "stored",
        requestedAt,
        receivedAt,
        sha256,
        absentAt: followsUseless ? null : previousRequestedAt,
        manner: "poll",
        isMoreUnread: place + 1 < unread.length,
        read: reads.get(receivedAt) ?? { ok: false, reason: "expected a read response" },
      };
      const result = pass(state, response, { ...AT, issuedAt, ...at });
      results.push(result);
      ({ state } = result);
    }
    const [first, ...others] = results;
    if (first === undefined) return;
    const joined = joinPasses(
      [first, ...others].map(({ rows }) => rows),
      others.at(-1) ?? first,
    );
    run.shelf.keep(joined.rows);
    run.state = joined.state;
  }
}
