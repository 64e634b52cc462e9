/** What a call came to, as it is shown. */
export interface LiveResponse {
  status: number;
  ms: number;
  /** The headers that tell callers something, in their order. */
  headers: { name: string; value: string }[];
  /** JSON with its parts on lines of their own, or any other text as it came. */
  text: string;
  /** Whether more came than is shown. */
  isCut: boolean;
}

const PATIENCE_MS = 5_000;
/** What is read of an answer: all tables of a large plan are some 100 kB. */
const MOST_BYTES = 1_048_576;
/** What is shown of it: the page stays below 100 kB, whatever must be escaped. */
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
 * Makes a call with a key, as its holder would. The key goes nowhere else; the answer is read up to a size and for a time.
 * @throws Error where there is no answer in time.
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
    if (size > most) break; // which lets go of the connection
  }
  return { text: Buffer.concat(chunks).subarray(0, most).toString("utf8"), isWhole: size <= most };
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
