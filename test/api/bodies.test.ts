import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { keepBodies } from "../../src/api/bodies.ts";

const LONG = JSON.stringify({ rounds: Array.from({ length: 200 }, (_, n) => ({ round_id: String(n) })) });

/** A response that counts how often its text was made. */
function responseOf(json: string, etag = '"a"') {
  const made = { times: 0 };
  return { made, response: { etag, json: () => (made.times++, json) } };
}

it("a body is made once for each way of writing it, and means the same in all of them", async () => {
  const bodyOf = keepBodies();
  const { made, response } = responseOf(LONG);
  for (let n = 0; n < 3; n++) {
    expect((await bodyOf(response, null)).bytes.toString()).toBe(LONG);
    const [brotli, gzip] = [await bodyOf(response, "br"), await bodyOf(response, "gzip")];
    expect([brotli.encoding, gzip.encoding]).toEqual(["br", "gzip"]);
    expect(brotliDecompressSync(brotli.bytes).toString()).toBe(LONG);
    expect(gunzipSync(gzip.bytes).toString()).toBe(LONG);
  }
  expect(made.times).toBe(3);
});

it("those who ask while it is being compressed wait for the same bytes", async () => {
  const bodyOf = keepBodies();
  const { made, response } = responseOf(LONG);
  const [first, ...others] = await Promise.all([1, 2, 3].map(async () => bodyOf(response, "br")));
  expect(made.times).toBe(1);
  for (const other of others) expect(other).toBe(first);
});

it("a short one is written as it is, whatever the caller would take", async () => {
  expect(await keepBodies()(responseOf("{}").response, "br")).toEqual({ bytes: Buffer.from("{}"), encoding: null });
});

it("a long one, and one with characters beyond ASCII, arrive byte for byte", async () => {
  for (const text of ["São Paulo: 1,05 × 2", "ü".repeat(40_000)]) {
    expect((await keepBodies()(responseOf(text).response, null)).bytes.toString()).toBe(text);
  }
});

it("another ETag is another body", async () => {
  const bodyOf = keepBodies();
  await bodyOf(responseOf("{}").response, null);
  expect(await bodyOf(responseOf("[]", '"b"').response, null)).toMatchObject({ bytes: Buffer.from("[]") });
});

it("what is kept is bounded: the least lately used go, and a huge one is not kept at all", async () => {
  const bodyOf = keepBodies();
  const half = "x".repeat(900_000);
  const first = responseOf(half, '"0"');
  const huge = responseOf("x".repeat(1_000_001), '"huge"');
  for (let n = 0; n < 2; n++) await bodyOf(huge.response, null);
  expect(huge.made.times).toBe(2);
  const second = responseOf(half, '"1"');
  for (const { response } of [first, second]) await bodyOf(response, null);
  for (let n = 2; n < 18; n++) {
    await bodyOf(first.response, null); // is asked for all the time
    await bodyOf(responseOf(half, `"${n}"`).response, null);
  }
  await bodyOf(second.response, null);
  expect([first.made.times, second.made.times]).toEqual([1, 2]);
});
