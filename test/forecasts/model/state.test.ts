import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { emptyState, probabilities } from "../../../src/forecasts/model/k7.ts";
import { createModel } from "../../../src/forecasts/model/model.ts";
import { decodeState, encodeState, modelOfState, stateHash } from "../../../src/forecasts/model/state.ts";
import { generatedRounds, stateAfter } from "../streams.ts";

const model = createModel({ thresholds: [200, 1000], edge: 0.01 });
const rounds = generatedRounds(2000);

describe("a saved state", () => {
  test("is restored bit for bit and continues as if it had never been saved", () => {
    const whole = encodeState(model, stateAfter(model, rounds));
    for (const cut of [0, 1, 136, 137, 1234, 2000]) {
      const saved = encodeState(model, stateAfter(model, rounds.slice(0, cut)));
      const resumed = stateAfter(model, rounds.slice(cut), decodeState(model, saved));
      expect(encodeState(model, resumed).equals(whole)).toBe(true);
    }
  });

  test("is the same whether or not anybody asked for forecasts in between", () => {
    const asked = emptyState(model);
    for (const round of rounds) {
      stateAfter(model, [round], asked);
      probabilities(model, asked);
    }
    expect(stateHash(encodeState(model, asked))).toBe(stateHash(encodeState(model, stateAfter(model, rounds))));
  });

  // The weights are those of the second implementation that made k7_bands.csv, bit for bit.
  test("holds the very doubles of a second implementation", () => {
    const bands = createModel({ thresholds: [198], edge: null });
    const { memory } = stateAfter(bands, rounds);
    expect([...memory.subarray(0, 7)]).toEqual([
      0.07631543363041536, 0.4725582024596254, 0.2163554906411243, 0.16064560197681368, 0.017136684469070955,
      0.03587788056082265, 0.021110706262127833,
    ]);
  });

  test("does not depend on the position of its bytes in a larger buffer", () => {
    const bytes = encodeState(model, stateAfter(model, rounds));
    const shifted = Buffer.concat([Buffer.alloc(3), bytes]).subarray(3);
    expect(decodeState(model, shifted).memory).toEqual(stateAfter(model, rounds).memory);
    expect(decodeState(model, new Uint8Array(bytes)).memory).toEqual(stateAfter(model, rounds).memory);
  });

  test("names its model in readable text and keeps doubles little-endian", () => {
    const bytes = encodeState(model, emptyState(model));
    const head = '{"model":"k7@1-7262526239ae","thresholds":[200,1000],"edge":0.01}';
    expect(bytes.toString("latin1", 0, 4)).toBe("RHS1");
    expect(bytes.readUInt32LE(4)).toBe(head.length);
    expect(bytes.toString("utf8", 8, 8 + head.length)).toBe(head);
    expect(bytes.readDoubleLE(8 + head.length)).toBe(3 / 11);
    expect(bytes).toHaveLength(8 + head.length + 8 * 48);
    expect(stateHash(bytes)).toBe(createHash("sha256").update(bytes).digest("hex"));
  });

  test("names its bands and edge, so that a table continues with these", () => {
    for (const edge of [0.01, 0, null]) {
      const made = createModel({ thresholds: [198, 1000], edge });
      const bytes = encodeState(made, stateAfter(made, rounds.slice(0, 50)));
      expect(modelOfState(bytes)).toEqual(made);
      expect(encodeState(made, decodeState(modelOfState(bytes), bytes)).equals(bytes)).toBe(true);
    }
    const bytes = encodeState(model, emptyState(model));
    const renamed = Buffer.from(bytes.toString("latin1").replace("k7@1", "k7@2"), "latin1");
    expect(() => modelOfState(renamed)).toThrow('expected a state of k7@1, got one of {"model":"k7@2-');
    expect(() => modelOfState(bytes.subarray(0, 20))).toThrow("expected a state of k7@1, got one of {");
    const otherEdge = Buffer.from(bytes.toString("latin1").replace('"edge":0.01', '"edge":0.02'), "latin1");
    expect(() => modelOfState(otherEdge)).toThrow(
      "expected a state of k7@1-7262526239ae, got bands and an edge of k7@1-",
    );
    expect(() => modelOfState(new Uint8Array(3))).toThrow("begins with RHS1");
  });

  test("of another model, or damaged, is refused with the expected and the found value", () => {
    const bytes = encodeState(model, stateAfter(model, rounds));
    const other = (thresholds: number[], edge: number | null) => () =>
      decodeState(createModel({ thresholds, edge }), bytes);
    expect(other([200, 1000], 0.02)).toThrow(
      '"edge":0.02}, got one of {"model":"k7@1-7262526239ae","thresholds":[200,1000],"edge":0.01}',
    );
    expect(other([200], 0.01)).toThrow(/expected a state of {"model":"k7@1-[0-9a-f]{12}","thresholds":\[200\]/);
    expect(() => decodeState(model, bytes.subarray(0, -8))).toThrow("bytes, got");
    expect(() => decodeState(model, new Uint8Array(5))).toThrow("begins with RHS1");
    expect(() => decodeState(model, Buffer.from("RHS2".padEnd(400)))).toThrow('got "RHS2"');
    const damaged = Buffer.from(bytes);
    damaged.writeDoubleLE(Number.NaN, damaged.length - 8);
    expect(() => decodeState(model, damaged)).toThrow("finite");
  });
});
