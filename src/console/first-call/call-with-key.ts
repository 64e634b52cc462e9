import { indented } from "../../frame/text/indented.ts";

/** The response to a call, as the page shows it. */
export interface LiveResponse {
  status: number;
  ms: number;
  /** Headers that are useful to callers, in order. */
  headers: { name: string; value: string }[];
  /** Indented JSON, or any other text as received. */
  text: string;
  /** Whether the response is longer than `text`. */
  isCut: boolean;
}

const PATIENCE_MS = 5_000;
/** Largest response that is read; all tables of a large plan are about 100 kB. */
const MOST_BYTES = 1_048_576;
/** Characters that are shown: the page stays below 100 kB, even if all of them are escaped. */
const MOST_SHOWN = 8_000;
const TOLD_HEADERS = [
  "content-type",
  "ratelimit-policy",
  "ratelimit",
  "x-quota-day-remaining",
  "x-quota-month-remaining",
  "x-data-age",
  "retry-after",
  "etag",
  "x-request-id",
];

/**
 * Calls the API with a key. The key is sent with this request only; size and time of the response are bounded.
 * @throws Error if there is no response in time.
 */
export async function callWithKey(url: string, key: string): Promise<LiveResponse> {
  const begunAt = performance.now();
  const response = await fetch(url, {
    headers: { "X-Api-Key": key, Accept: "application/json" },
    redirect: "manual",
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const { text, isWhole } = await readUpTo(response, MOST_BYTES);
  const pretty = isWhole ? indented(text) : text;
  return {
    status: response.status,
    ms: Math.round(performance.now() - begunAt),
    headers: TOLD_HEADERS.flatMap((name) => {
      const value = response.headers.get(name);
      return value === null ? [] : [{ name, value: value.slice(0, 500) }];
    }),
    text: pretty.slice(0, MOST_SHOWN).toWellFormed(),
    isCut: !isWhole || pretty.length > MOST_SHOWN,
  };
}

async function readUpTo(response: Response, most: number): Promise<{ text: string; isWhole: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > most) break; // closes the connection
  }
  return { text: Buffer.concat(chunks).subarray(0, most).toString("utf8"), isWhole: size <= most };
}
