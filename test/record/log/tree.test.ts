import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  growTiles,
  leafHash,
  proveConsistency,
  proveInclusion,
  type ReadTile,
  rootOf,
  type Tile,
  verifyConsistency,
  verifyInclusion,
} from "../../../src/record/log/tree.ts";
import { consistency, mth, path } from "./rfc6962.ts";

/** The eight leaves that the tests of Certificate Transparency's reference implementation are built on. */
const CT_LEAVES = [
  "",
  "00",
  "10",
  "2021",
  "3031",
  "40414243",
  "5051525354555657",
  "606162636465666768696a6b6c6d6e6f",
].map((hex) => Buffer.from(hex, "hex"));

/** Roots of the first n of them, from the same tests. */
const CT_ROOTS = [
  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
  "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
  "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
  "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
  "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
  "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
  "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

/** A tree that was grown in batches. */
function grow(batches: readonly (readonly Uint8Array[])[]) {
  const tiles = new Map<string, Tile>();
  for (const batch of batches) {
    const edge = new Map<number, Tile>();
    for (const tile of tiles.values()) if (tile.n >= (edge.get(tile.level)?.n ?? 0)) edge.set(tile.level, tile);
    for (const tile of growTiles(
      [...edge.values()],
      batch.map((leaf) => leafHash(leaf)),
    ))
      tiles.set(`${tile.level}/${tile.n}`, tile);
  }
  const readTile: ReadTile = (level, n) => {
    const tile = tiles.get(`${level}/${n}`);
    return tile === undefined ? Promise.reject(new Error(`no tile ${level}/${n}`)) : Promise.resolve(tile.hashes);
  };
  return { tiles, readTile };
}

const numbered = (count: number) => Array.from({ length: count }, (_, index) => Buffer.from(`entry ${index}`));

describe("a tree of tiles", () => {
  test.each(CT_ROOTS.map((root, size) => [size, root] as const))(
    "of %i leaves has the root of Certificate Transparency's reference tree",
    async (size, root) => {
      const { readTile } = grow([CT_LEAVES.slice(0, size)]);
      expect((await rootOf(readTile, size)).toString("hex")).toBe(root);
    },
  );

  test("has the roots and proofs of RFC 6962, in whatever batches it grew", async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.double({ min: 0, max: 1, noNaN: true }), async (counts, share) => {
        const size = counts.reduce((sum, count) => sum + count, 0);
        const leaves = numbered(size);
        let from = 0;
        const { readTile } = grow(counts.map((count) => leaves.slice(from, (from += count))));
        const index = Math.min(size - 1, Math.floor(share * size));
        expect(await rootOf(readTile, size)).toEqual(mth(leaves));
        expect(await proveInclusion(readTile, index, size)).toEqual(path(index, leaves));
        expect(await proveConsistency(readTile, index, size)).toEqual(consistency(index, leaves));
        // an older root follows from the tiles of the grown tree
        expect(await rootOf(readTile, index)).toEqual(mth(leaves.slice(0, index)));
      }),
      { numRuns: 30 },
    );
  });

  test("reaches a third level after 65,536 entries", async () => {
    const leaves = numbered(65_537);
    const { tiles, readTile } = grow([leaves.slice(0, 40_000), leaves.slice(40_000)]);
    expect([...tiles.values()].filter(({ level }) => level === 2).map(({ hashes }) => hashes.length)).toEqual([32]);
    expect(await rootOf(readTile, 65_537)).toEqual(mth(leaves));
  });
});

describe("proofs", () => {
  test("hold for their sizes and for nothing else", async () => {
    const leaves = numbered(70);
    const { readTile } = grow([leaves]);
    for (let size = 1; size <= leaves.length; size += 3) {
      const root = await rootOf(readTile, size);
      for (let old = 0; old <= size; old++) {
        const proof = await proveConsistency(readTile, old, size);
        const oldRoot = await rootOf(readTile, old);
        expect(verifyConsistency({ oldSize: old, size, proof }, oldRoot, root)).toBe(true);
        if (old === 0) continue;
        expect(verifyConsistency({ oldSize: old, size, proof }, Buffer.alloc(32), root)).toBe(false);
        if (old < size) {
          expect(verifyConsistency({ oldSize: old, size, proof }, oldRoot, Buffer.alloc(32))).toBe(false);
          expect(verifyConsistency({ oldSize: old, size, proof: [...proof, root] }, oldRoot, root)).toBe(false);
          expect(verifyConsistency({ oldSize: old, size, proof: proof.slice(1) }, oldRoot, root)).toBe(false);
        }
        const index = old - 1;
        const leaf = leafHash(leaves[index] ?? Buffer.alloc(0));
        const inclusion = { leaf, index, size, proof: await proveInclusion(readTile, index, size) };
        expect(verifyInclusion(inclusion, root)).toBe(true);
        expect(verifyInclusion({ ...inclusion, leaf: Buffer.alloc(32) }, root)).toBe(false);
        expect(verifyInclusion({ ...inclusion, proof: [...inclusion.proof, root] }, root)).toBe(false);
        if (size > 1) expect(verifyInclusion({ ...inclusion, index: (index + 1) % size }, root)).toBe(false);
      }
    }
  });
});
