import { findKnown } from "../../src/pass/known.ts";
import { pass } from "../../src/pass/pass.ts";
import type { PassResponse, PassResult, PassState, PassTime, ReadResponse } from "../../src/pass/state.ts";
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

const AT: Omit<PassTime, "issuedAt"> = { tables: 1, mayRead: true, maySettle: true, noSet: null };

/** Runs one pass and keeps its rows. */
export function step(
  run: Run,
  { response, issuedAt }: Pick<Given, "response" | "issuedAt">,
  at: Partial<PassTime> = {},
): PassResult {
  // a poller leaves a response unread while older ones wait
  const given = response.from === "poll" && run.state.hasUnread ? { ...response, read: null } : response;
  const result = pass(run.state, given, { ...AT, issuedAt, noSet: response.from === "poll" ? null : "refused", ...at });
  run.shelf.keep(result.rows);
  run.state = result.state;
  return result;
}

/** Reads every payload that waits, oldest first. */
export function readWaiting(
  run: Run,
  reads: ReadonlyMap<string, ReadResponse>,
  issuedAt: string,
  at: Partial<PassTime> = {},
): void {
  for (;;) {
    const [payload, another] = run.shelf.unread();
    if (payload === undefined) return;
    const { requestedAt, receivedAt, sha256, previousRequestedAt } = payload;
    const response: PassResponse = {
      from: "stored",
      requestedAt,
      receivedAt,
      sha256,
      absentAt: run.shelf.followsUseless(receivedAt) ? null : previousRequestedAt,
      manner: "poll",
      isMoreUnread: another !== undefined,
      read: reads.get(receivedAt) ?? { ok: false, reason: "expected a read response" },
    };
    step(run, { response, issuedAt }, { noSet: null, ...at });
  }
}

/** A state without what is not part of its meaning: how its known rounds are layered. */
export function plain({ known, ...state }: PassState): object {
  const { lastSeq } = state.head;
  const ids = [...known.older.keys(), ...known.newer.keys()];
  return {
    ...state,
    known: new Map(
      ids.flatMap((id) => {
        const round = findKnown(known, lastSeq, id);
        return round === undefined ? [] : [[id, round] as const];
      }),
    ),
  };
}
