import type { NoticeChanges } from "./notice-changes.ts";
import { formatSentence, idsSentence, stuckSentence, unreadableSentence } from "./notices.ts";
import type { IntakePlan } from "../intake.ts";

/** The parts of a response that notices need; `now` is when it arrived. */
interface NoticedResponse {
  items: readonly unknown[];
  refusedByAdapter: number;
  isPage: boolean;
  payload: { now: string };
  /** The newest on-time round, if for some responses every new round was older. */
  outOfOrderAfter: string | null;
}

/** Opens the notice that a response cannot be read; `isChanged` if many in a row could not. */
export function noteUnreadable(
  notices: NoticeChanges,
  tableId: number,
  { payload: { now } }: Pick<NoticedResponse, "payload">,
  isChanged: boolean,
): void {
  notices.set(tableId, "format", now, (since) => unreadableSentence(since, isChanged));
}

/** Opens and closes the notices that follow from one response. */
export function noteResponse(
  notices: NoticeChanges,
  tableId: number,
  response: NoticedResponse,
  taken: IntakePlan,
  isChanged: boolean,
): void {
  const { items, refusedByAdapter, isPage, payload, outOfOrderAfter } = response;
  const isBrokenPage = isPage && isChanged && refusedByAdapter > 0;
  const sentence = (since: string) =>
    isBrokenPage
      ? unreadableSentence(since, isChanged)
      : formatSentence(items.length, refusedByAdapter, since, isChanged);
  const format = sentence(payload.now);
  if (format === null) notices.close(tableId, "format");
  else if (format !== undefined) {
    notices.set(tableId, "format", payload.now, (since) => sentence(since) ?? "");
  }
  const { stuck } = taken;
  if (stuck?.kind === "begun") notices.set(tableId, "stuck", payload.now, (since) => stuckSentence(stuck, since));
  if (stuck?.kind === "over") notices.close(tableId, "stuck");
  if (outOfOrderAfter !== null) {
    notices.set(tableId, "ids", payload.now, (since) => idsSentence(outOfOrderAfter, since));
  }
  if (taken.onTime > 0) notices.close(tableId, "ids");
  if (taken.rounds.length > 0) notices.close(tableId, "stalled");
}
