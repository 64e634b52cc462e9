import { listKnown } from "./known-rounds.ts";
import type { ReadResponse } from "./response.ts";
import type { NoticeEvent, PassState } from "./state.ts";
import type { IntakePlan } from "../../rounds/intake.ts";
import { nextFormat, verdictOf, type FormatState, type Verdict } from "../../rounds/notices/format-watch.ts";
import { NoticeChanges } from "../../rounds/notices/notice-changes.ts";
import type { NoticeKind } from "../../rounds/notices/notices.ts";
import { noteResponse, noteUnreadable } from "../../rounds/notices/response-notices.ts";

/** What a response changes in the open notices of its table, and in the state of its format. */
export interface Noticed {
  notices: ReadonlyMap<NoticeKind, string>;
  events: NoticeEvent[];
  format: FormatState;
}

/** The notices after a response that was received at `now`. */
export function noticesAfter(
  state: PassState,
  read: ReadResponse & { ok: true },
  taken: IntakePlan,
  now: string,
): Noticed {
  const { items, refusedByAdapter, isPage } = read;
  const verdict = verdictOf({ items: items.length, refused: refusedByAdapter, kept: taken.refused.length, isPage });
  return notice(state, verdict, now, (changes, format) => {
    const outOfOrderAfter = outOfOrder(state, taken);
    const response = { items, refusedByAdapter, isPage, payload: { now }, outOfOrderAfter };
    noteResponse(changes, state.table.tableId, response, taken, format.since !== null);
  });
}

/** After this many consecutive responses with only late new rounds, the feed is not just stale. */
const LATE_RESPONSES = 3;

/** The newest on-time round if enough responses since then listed only late rounds; else null. */
function outOfOrder({ head, known }: PassState, { rounds, onTime }: IntakePlan): string | null {
  if (rounds.length === 0 || onTime > 0 || head.newestSeq === null) return null;
  const responses = new Set<string>();
  for (const [, round] of listKnown(known)) {
    if (round.late && round.seq > head.newestSeq) responses.add(round.receivedAt);
  }
  return responses.size + 1 >= LATE_RESPONSES ? head.newestRoundId : null;
}

/** The notices after a response that cannot be read at all. */
export function noticesAfterUnreadable(state: PassState, now: string): Noticed {
  return notice(state, "unreadable", now, (changes, format) => {
    noteUnreadable(changes, state.table.tableId, { payload: { now } }, format.since !== null);
  });
}

function notice(
  { table, notices, format: before }: PassState,
  verdict: Verdict,
  now: string,
  apply: (changes: NoticeChanges, format: FormatState) => void,
): Noticed {
  const format = nextFormat(before, verdict, now);
  const changes = new NoticeChanges(new Map([[table.tableId, notices]]));
  apply(changes, format);
  const events = changes.changes().map(({ kind, text, since }) => ({ kind, text, since: since ?? null }));
  if (events.length === 0) return { notices, events, format };
  const after = new Map(notices);
  for (const { kind, text, since } of events) {
    if (text === null) after.delete(kind);
    else after.set(kind, since ?? now);
  }
  return { notices: after, events, format };
}

/** The change of a format to store; null if there is none. */
export function changeOf(from: FormatState, to: FormatState): { from: FormatState; to: FormatState } | null {
  return from.badResponses === to.badResponses && from.since === to.since ? null : { from, to };
}
