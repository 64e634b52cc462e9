import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Answer } from "./operation.ts";

/** How a body may be written; null is as it is. */
export type Encoding = "br" | "gzip" | null;

const PREFERRED = ["br", "gzip"] as const;
/** Smaller answers do not get smaller. */
const COMPRESSED_FROM_BYTES = 1_024;
/** What is kept in all, and the largest that is kept. */
const KEPT_BYTES = 16_000_000;
const LARGEST_KEPT = 1_000_000;

const compress = {
  // Brotli's own default is for what is compressed once and sent for years
  br: (bytes: Buffer) => promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  gzip: (bytes: Buffer) => promisify(gzip)(bytes),
};

/** The bytes of an answer, and how they are written. */
export interface Body {
  bytes: Buffer;
  encoding: Encoding;
}

/**
 * Makes bodies, and keeps the newest, since what one caller asks for is often what another has just been given: of a
 * table that has not changed, the bytes are there, also the compressed ones.
 */
export function keepBodies(): (answer: Answer, encoding: Encoding) => Promise<Body> | Body {
  const kept = new Map<string, Body>(); // least recently used first
  let keptBytes = 0;

  function keep(name: string, body: Body): void {
    if (body.bytes.length > LARGEST_KEPT || kept.has(name)) return;
    kept.set(name, body);
    keptBytes += body.bytes.length;
    for (const [oldest, { bytes }] of kept) {
      if (keptBytes <= KEPT_BYTES) return;
      kept.delete(oldest);
      keptBytes -= bytes.length;
    }
  }

  async function encode(name: string, plain: Buffer, encoding: "br" | "gzip"): Promise<Body> {
    const body = { bytes: await compress[encoding](plain), encoding };
    keep(name, body);
    return body;
  }

  return (answer, encoding) => {
    const name = `${encoding} ${answer.etag}`; // the ETag stands for the content, however it is written
    const found = kept.get(name);
    if (found !== undefined) {
      kept.delete(name);
      kept.set(name, found);
      return found;
    }
    const plain = Buffer.from(answer.json());
    if (encoding !== null && plain.length >= COMPRESSED_FROM_BYTES) return encode(name, plain, encoding);
    const body = { bytes: plain, encoding: null };
    keep(name, body);
    return body;
  };
}

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
