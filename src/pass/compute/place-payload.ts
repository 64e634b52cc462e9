import { absentAtOf } from "./place-head.ts";
import type { PayloadRow } from "./rows.ts";
import type { PassResponse, ReceivedPayload } from "./response.ts";
import type { PassState } from "./state.ts";

/** The result of reading a payload. */
type Outcome = Pick<PayloadRow, "state"> &
  Partial<Pick<PayloadRow, "refusedReason" | "items" | "newRounds" | "quarantined">>;

const NO_OUTCOME = { refusedReason: null, items: null, newRounds: null, quarantined: null };

/** The payload of a response that is not stored yet. */
export function storedPayload(state: PassState, response: PassResponse, outcome: Outcome): PayloadRow[] {
  return response.from === "stored" || response.payload === null ? [] : [payloadOf(state, response, outcome)];
}

/** The row of a payload. @throws Error if the response has none */
export function payloadOf(
  { head }: PassState,
  response: Exclude<PassResponse, { from: "stored" }>,
  outcome: Outcome,
): PayloadRow {
  const { path, status, contentType, bytes, sha256, body, served } = payloadIn(response);
  const { requestedAt, receivedAt } = response;
  return {
    receivedAt,
    kind: response.from === "poll" ? "poll" : "history",
    requestedAt: requestedAt ?? receivedAt,
    previousRequestedAt: absentAtOf(head, response),
    path,
    status,
    contentType,
    bytes,
    sha256,
    body,
    ...(served && { served }),
    error: null,
    ...NO_OUTCOME,
    ...outcome,
  };
}

function payloadIn(response: Exclude<PassResponse, { from: "stored" }>): ReceivedPayload {
  if (response.payload === null) throw new Error("expected a response with a payload to store, found none");
  return response.payload;
}

/** The outcome to write to a payload that is stored already. */
export function markOf(response: PassResponse, outcome: Outcome) {
  if (response.from !== "stored") return [];
  return [{ receivedAt: response.receivedAt, ...NO_OUTCOME, ...outcome }];
}
