import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Encoding } from "./etag.ts";
import type { Answer } from "./operation.ts";

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
 * table that has not changed, the bytes are there, also the compressed ones. Who asks for bytes that are just being
 * compressed waits for the same.
 */
export function keepBodies(): (answer: Answer, encoding: Encoding) => Promise<Body> | Body {
  const kept = new Map<string, Body>(); // least recently used first
  const underWay = new Map<string, Promise<Body>>();
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
    try {
      const body = { bytes: await compress[encoding](plain), encoding };
      keep(name, body);
      return body;
    } finally {
      underWay.delete(name);
    }
  }

  return (answer, encoding) => {
    const name = `${encoding} ${answer.etag}`; // the ETag stands for the content, however it is written
    const found = kept.get(name);
    if (found !== undefined) {
      kept.delete(name);
      kept.set(name, found);
      return found;
    }
    const begun = underWay.get(name);
    if (begun !== undefined) return begun;
    const plain = Buffer.from(answer.json());
    if (encoding !== null && plain.length >= COMPRESSED_FROM_BYTES) {
      const encoded = encode(name, plain, encoding);
      underWay.set(name, encoded);
      return encoded;
    }
    const body = { bytes: plain, encoding: null };
    keep(name, body);
    return body;
  };
}
