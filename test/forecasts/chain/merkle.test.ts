import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { growTree, verifyInclusion, type GrownTree } from "../../../src/forecasts/chain/merkle.ts";
import { mth, path } from "../rfc6962.ts";

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

/** Roots of the first n of them, from the same tests; the first is that of RFC 6962 for an empty tree. */
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

function treeOf(leaves: readonly Uint8Array[], proved?: number): GrownTree {
  const tree = growTree();
  for (const [index, leaf] of leaves.entries()) tree.add(leaf, { prove: index === proved });
  return tree.finish();
}
const merkleRoot = (leaves: readonly Uint8Array[]) => treeOf(leaves).root;
const inclusionProof = (leaves: readonly Uint8Array[], index: number) => treeOf(leaves, index).proved?.proof ?? [];

const anyLeaves = fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 70 });
const anyLeaf = anyLeaves.chain((leaves) => fc.tuple(fc.constant(leaves), fc.nat(leaves.length - 1)));

describe("the tree", () => {
  test.each(CT_ROOTS.map((root, size) => [size, root] as const))(
    "of %i leaves has the root of Certificate Transparency's reference tree",
    (size, root) => {
      expect(merkleRoot(CT_LEAVES.slice(0, size))).toBe(root);
    },
  );

  // From the same tests: leaf, tree size, path.
  test.each([
    [0, 1, []],
    [
      0,
      8,
      [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
      ],
    ],
    [
      5,
      8,
      [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
      ],
    ],
    [2, 3, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]],
    [
      1,
      5,
      [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
      ],
    ],
  ])("proves leaf %i of %i by the path in print", (index, size, proof) => {
    expect(inclusionProof(CT_LEAVES.slice(0, size), index)).toEqual(proof);
    expect(verifyInclusion({ leaf: CT_LEAVES[index]!, index, size, proof }, CT_ROOTS[size]!)).toBe(true);
  });

  test("is the tree of the RFC for any leaves, and so are its paths", () => {
    fc.assert(
      fc.property(anyLeaf, ([leaves, index]) => {
        expect(merkleRoot(leaves)).toBe(mth(leaves).toString("hex"));
        expect(inclusionProof(leaves, index)).toEqual(path(index, leaves).map((node) => node.toString("hex")));
      }),
    );
  });

  test("lets every leaf be proved at its own place and nowhere else", () => {
    const anyDistinct = fc.uniqueArray(fc.uint8Array({ maxLength: 40 }), {
      minLength: 2,
      maxLength: 70,
      selector: (leaf) => Buffer.from(leaf).toString("hex"),
    });
    fc.assert(
      fc.property(anyDistinct, fc.nat(1000), fc.nat(80), (leaves, place, other) => {
        const index = place % leaves.length;
        fc.pre(other !== index);
        const root = merkleRoot(leaves);
        const inclusion = { leaf: leaves[index]!, index, size: leaves.length, proof: inclusionProof(leaves, index) };
        expect(verifyInclusion(inclusion, root)).toBe(true);
        expect(verifyInclusion({ ...inclusion, index: other }, root)).toBe(false);
      }),
    );
  });

  test("gives another root when anything in any leaf changes, and proves nothing that was never in it", () => {
    fc.assert(
      fc.property(anyLeaf, fc.uint8Array({ maxLength: 40 }), ([leaves, index], other) => {
        fc.pre(Buffer.compare(leaves[index]!, other) !== 0);
        const root = merkleRoot(leaves);
        expect(merkleRoot(leaves.with(index, other))).not.toBe(root);
        const proof = inclusionProof(leaves, index);
        expect(verifyInclusion({ leaf: other, index, size: leaves.length, proof }, root)).toBe(false);
      }),
    );
  });

  test("refuses a proof that is cut, longer, altered or for another size or root", () => {
    const [leaf, root] = [CT_LEAVES[5]!, CT_ROOTS[8]!];
    const proof = inclusionProof(CT_LEAVES, 5);
    const good = { leaf, index: 5, size: 8, proof };
    expect(verifyInclusion(good, root)).toBe(true);
    for (const wrong of [
      { ...good, proof: proof.slice(1) },
      { ...good, proof: proof.slice(0, -1) },
      { ...good, proof: [...proof, proof[0]!] },
      { ...good, proof: proof.with(1, proof[0]!) },
      { ...good, proof: proof.with(1, "") },
      { ...good, proof: proof.with(1, proof[1]!.toUpperCase()) },
      { ...good, size: 6 },
      { ...good, size: 5 },
      { ...good, size: 16 },
      { ...good, size: Number.POSITIVE_INFINITY },
      { ...good, index: -1 },
      { ...good, index: 4 },
      { ...good, index: 5.5 },
    ])
      expect(verifyInclusion(wrong, root)).toBe(false);
    expect(verifyInclusion(good, CT_ROOTS[7]!)).toBe(false);
    expect(verifyInclusion({ leaf: CT_LEAVES[0]!, index: 1, size: 1, proof: [] }, CT_ROOTS[1]!)).toBe(false);
  });

  test("does not take a node for a leaf", () => {
    const [left, right] = [mth(CT_LEAVES.slice(0, 4)), mth(CT_LEAVES.slice(4))];
    const forged = { leaf: Buffer.concat([left, right]), index: 0, size: 1, proof: [] };
    expect(verifyInclusion(forged, CT_ROOTS[8]!)).toBe(false);
  });

  test("knows its size and the place of the leaf it proves, and proves one only", () => {
    expect(treeOf(CT_LEAVES, 5)).toMatchObject({ size: 8, proved: { index: 5 } });
    expect(treeOf(CT_LEAVES)).toMatchObject({ size: 8, proved: null });
    const tree = growTree();
    tree.add(CT_LEAVES[0]!, { prove: true });
    expect(() => tree.add(CT_LEAVES[1]!, { prove: true })).toThrow("expected one leaf to prove, got 0 and 1");
  });
});
