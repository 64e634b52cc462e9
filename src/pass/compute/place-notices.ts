import { listKnown } from "./known-rounds.ts";
import type { ReadResponse } from "./response.ts";
import type { NoticeEvent, PassState } from "./state.ts";
import type { IntakePlan } from "../../rounds/intake.ts";
import { nextFormat, verdictOf, type FormatState } from "../../rounds/notices/format-watch.ts";
import {
  formatSentence,
  idsSentence,
  stuckSentence,
  unreadableSentence,
  type NoticeKind,
} from "../../rounds/notices/notices.ts";

/** What a response changes in the open notices of its table, and in the state of its format. */
export interface Noticed {
  notices: ReadonlyMap<NoticeKind, string>;
  events: NoticeEvent[];
  format: FormatState;
}

/** The sentence of a notice that is open since a time; null closes it. */
type Change = ((since: string) => string) | null;

/** The notices after a response that was received at `now`. */
export function noticesAfter(
  state: PassState,
  { items, refusedByAdapter, isPage }: ReadResponse & { ok: true },
  taken: IntakePlan,
  now: string,
): Noticed {
  const counts = { items: items.length, refused: refusedByAdapter };
  const verdict = verdictOf({ ...counts, kept: taken.refused.length, isPage });
  const format = nextFormat(state.format, verdict, now);
  const isChanged = format.since !== null;
  const changes = new Map<NoticeKind, Change>();
  if (verdict === "good" || verdict === "held") changes.set("format", null);
  if (verdict === "refused") changes.set("format", (since) => formatSentence(counts, since, isChanged));
  // a single page that cannot be read can be an accident of the house
  if (verdict === "unreadable" && isChanged) changes.set("format", (since) => unreadableSentence(since, isChanged));
  const { stuck } = taken;
  if (stuck !== null) changes.set("stuck", stuck.kind === "over" ? null : (since) => stuckSentence(stuck, since));
  const newest = outOfOrder(state, taken);
  if (newest !== null) changes.set("ids", (since) => idsSentence(newest, since, state.table.roundIds));
  if (taken.onTime > 0) changes.set("ids", null);
  if (taken.rounds.length > 0) changes.set("stalled", null);
  return changed(state, format, changes, now);
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
  const format = nextFormat(state.format, "unreadable", now);
  const sentence = (since: string) => unreadableSentence(since, format.since !== null);
  return changed(state, format, new Map([["format", sentence]]), now);
}

function changed(
  { notices }: PassState,
  format: FormatState,
  changes: ReadonlyMap<NoticeKind, Change>,
  now: string,
): Noticed {
  const after = new Map(notices);
  const events: NoticeEvent[] = [];
  for (const [kind, sentence] of changes) {
    if (sentence === null) {
      if (after.delete(kind)) events.push({ kind, text: null, since: null });
      continue;
    }
    const since = notices.get(kind) ?? now;
    after.set(kind, since);
    events.push({ kind, text: sentence(since), since });
  }
  return { notices: events.length === 0 ? notices : after, events, format };
}

/** The change of a format to store; null if there is none. */
export function changeOf(from: FormatState, to: FormatState): { from: FormatState; to: FormatState } | null {
  return from.badResponses === to.badResponses && from.since === to.since ? null : { from, to };
}
