import { isUtcTime } from "../../iso-time.ts";
import { parseForecastId } from "../../forecasts/chain/forecast-id.ts";
import type { PayloadKey } from "../../rounds/lists/payload-list-store.ts";

/** What a search text may name. */
export interface SearchTerm {
  text: string;
  /** The id in `12` or `run 12`. */
  id: bigint | null;
  /** The kind before the id; null if the id may be of any kind. */
  kind: IdKind | null;
  /** The ending of a key: the last four characters, or null if the text is too short or long to be one. */
  keyEnding: string | null;
  /** Whether a whole key was typed. Only its ending is searched. */
  isWholeKey: boolean;
  /** A reference, or the beginning of one, without spaces and in upper case. Null if it is too short, or a kind is named. */
  reference: string | null;
  payload: PayloadKey | null;
  forecast: { id: string; tableId: number } | null;
}

/** Kinds that are searched by id, by the words that the audit log and the pages use for them. */
const ID_KINDS = {
  account: "account",
  caller: "account",
  key: "key",
  "top-up": "topup",
  topup: "topup",
  run: "run",
  calibration: "calibration",
  line: "line",
  "bank line": "line",
  mail: "mail",
  job: "job",
} as const;
export type IdKind = (typeof ID_KINDS)[keyof typeof ID_KINDS];

const KEY_PREFIX = "rh_live_";
/** A shorter beginning of a reference would match too many. */
const SHORTEST_REFERENCE = 4;

/**
 * Reads a search text.
 *
 * @example
 * readTerm("12").id; // => 12n
 * readTerm("run 12").kind; // => "run"
 * readTerm("rf92 4000 h01").reference; // => "RF924000H01"
 * readTerm("…a1b2").keyEnding; // => "a1b2"
 * readTerm("3/2026-11-21T04:00:12.1234560Z").payload.tableId; // => 3
 */
export function readTerm(given: string): SearchTerm {
  const text = given.trim();
  const [, word = "", digits = ""] = /^(?:([a-z][a-z -]*?)\s+)?#?(\d{1,18})$/i.exec(text) ?? [];
  const kind = ID_KINDS[word.toLowerCase() as keyof typeof ID_KINDS] ?? null;
  const isWholeKey = text.startsWith(KEY_PREFIX);
  const ending = isWholeKey ? text.slice(-4) : text.replace(/^…/, "");
  const reference = text.replaceAll(/\s/g, "").toUpperCase();
  const forecast = parseForecastId(text);
  return {
    text: isWholeKey ? `…${ending}` : text,
    id: digits !== "" && (word === "" || kind !== null) ? BigInt(digits) : null,
    kind,
    keyEnding: ending.length === 4 ? ending : null,
    isWholeKey,
    reference: kind !== null || reference.length < SHORTEST_REFERENCE ? null : reference,
    payload: payloadOf(text),
    forecast: forecast && { id: text, tableId: forecast.tableId },
  };
}

/** The payload that a path of its page or `TABLE/TIME` names. */
function payloadOf(text: string): PayloadKey | null {
  const [, table = "", at = ""] =
    /(?:^|\/payloads\/)(\d{1,9})\/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,7})?Z)$/.exec(text) ?? [];
  return !isUtcTime(at) ? null : { tableId: Number(table), receivedAt: at };
}
