/** The ways in which an answer may be written; null is as it is. */
export const ENCODINGS = [null, "br", "gzip"] as const;

/** How an answer is written. */
export type Encoding = (typeof ENCODINGS)[number];

const PREFERRED = ["br", "gzip"] as const;

/**
 * The best encoding that an Accept-Encoding header allows (RFC 9110, 12.5.3); Brotli before gzip where the caller likes
 * both as much.
 *
 * @example
 * encodingFor("gzip, deflate, br"); // => "br"
 * encodingFor("br;q=0.1, gzip"); // => "gzip"
 * encodingFor("br;q=1, *;q=0"); // => "br"
 * encodingFor("*"); // => "br"
 * encodingFor("identity, gzip;q=0.5"); // => null
 * encodingFor("identity"); // => null
 * encodingFor(undefined); // => null
 */
export function encodingFor(accepted: string | undefined): Encoding {
  if (accepted === undefined) return null;
  const likes = new Map(
    accepted.split(",").map((item): [string, number] => {
      const [name = "", ...options] = item.split(";").map((part) => part.trim().toLowerCase());
      const quality = options.find((option) => option.startsWith("q="));
      return [name, quality === undefined ? 1 : Number(quality.slice(2))];
    }),
  );
  let best: { encoding: Encoding; like: number } = { encoding: null, like: likes.get("identity") ?? 0 };
  for (const encoding of PREFERRED) {
    const like = likes.get(encoding) ?? likes.get("*") ?? 0;
    // as they are only where that is what the caller likes best
    if (like > best.like || (like > 0 && like === best.like && best.encoding === null)) best = { encoding, like };
  }
  return best.encoding;
}
