import { describe, expect, test } from "vitest";
import { UsageError } from "../../../src/errors.ts";
import { halfLifeDecay } from "../../../src/forecasts/model/half-life.ts";
import { emptyState } from "../../../src/forecasts/model/k7.ts";
import { createModel } from "../../../src/forecasts/model/model.ts";
import { readParameterFile } from "../../../src/forecasts/model/parameter-file.ts";
import { namedParameters, storedParameters, valuesOf } from "../../../src/forecasts/model/parameter-set.ts";
import { K7_1 } from "../../../src/forecasts/model/parameters.ts";
import { decodeState, encodeState, modelOfState } from "../../../src/forecasts/model/state.ts";
import { generatedRounds, stateAfter } from "../streams.ts";

const read = (text: string) => readParameterFile(text, K7_1);

function problemsOf(text: string): { path: string; message: string }[] {
  try {
    read(text);
  } catch (error) {
    if (error instanceof UsageError) return [...error.problems];
    throw error;
  }
  throw new Error("expected problems, got a set");
}

describe("a parameter file", () => {
  test("lists the differences from K7, and names the set by its hash", () => {
    const { parameters, thresholds } = read(`
      theory_half_lives: [300, 3000]
      recent_half_life: 500
      share: 0.0001
      prior_weights: { LR: 1, TH: 1, TH200: 1, TH2000: 1, D1000: 1, M1: 1, G: 4 }
      x0: 1.5
      gap_bin_ends: [0, 3, 9]
      thresholds: [1.5, 2.25, 10]
    `);
    expect(thresholds).toEqual([150, 225, 1000]);
    expect(parameters).toEqual({
      ...K7_1,
      name: expect.stringMatching(/^k7@1\+[0-9a-f]{12}$/) as string,
      theoryDecays: [halfLifeDecay(300), halfLifeDecay(3000)],
      recentDecay: halfLifeDecay(500),
      share: 0.0001,
      priorWeights: [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.4],
      x0Hundredths: 150,
      gapBinEnds: [0, 3, 9],
    });
    expect(storedParameters(parameters.name, JSON.parse(JSON.stringify(valuesOf(parameters))))).toEqual(parameters);
  });

  test("with K7's own numbers, or none, is K7 itself", () => {
    const own = `
      theory_half_lives: [200, 2000]
      recent_half_life: 1000
      prior_weights: { LR: 3, TH: 3, TH200: 1, TH2000: 1, D1000: 1, M1: 1, G: 1 }
      x0: 1.1
    `;
    for (const text of ["", "# nothing\n", own]) expect(read(text)).toEqual({ parameters: K7_1, thresholds: null });
  });

  test("lists everything that is wrong with it", () => {
    const text = `
      share: 2
      half_life: 3
      prior_weights: { LR: 1, XX: 2 }
      gap_bin_ends: [3, 1]
      x0: 1.005
      recent_half_life: 1.5
    `;
    const paths = problemsOf(text).map(({ path }) => path);
    expect(new Set(paths)).toEqual(
      new Set([
        "share",
        "half_life",
        ...["TH", "TH200", "TH2000", "D1000", "M1", "G", "XX"].map((expert) => `prior_weights.${expert}`),
        "gap_bin_ends",
        "x0",
        "recent_half_life",
      ]),
    );
    expect(problemsOf("half_life: 3")[0]?.message).toContain("there are long_run_prior, theory_prior");
    expect(problemsOf("[1, 2]")).toMatchObject([{ path: "the file" }]);
    expect(() => read("share: [")).toThrow("the parameters are not YAML");
  });
});

describe("a state of another set", () => {
  const parameters = namedParameters({ ...valuesOf(K7_1), share: 1e-4 });
  const model = createModel({ thresholds: [200, 1000], edge: 0.01, parameters });
  const bytes = encodeState(model, stateAfter(model, generatedRounds(300)));

  test("holds the whole set and is restored bit for bit", () => {
    expect(modelOfState(bytes)).toEqual(model);
    expect(encodeState(model, decodeState(modelOfState(bytes), bytes)).equals(bytes)).toBe(true);
  });

  test("can never be read as another's", () => {
    expect(() => decodeState(createModel({ thresholds: [200, 1000], edge: 0.01 }), bytes)).toThrow('"model":"k7@1+');
    const text = bytes.toString("latin1");
    expect(() => modelOfState(Buffer.from(text.replace('"share":0.0001', '"share":0.0002'), "latin1"))).toThrow(
      `expected the parameters of ${parameters.name}, got those of k7@1+`,
    );
    const posing = Buffer.from(text.replace(parameters.name, "k7@1".padEnd(parameters.name.length)), "latin1");
    expect(() => modelOfState(posing)).toThrow("expected the parameters of k7@1 ");
    const own = createModel({ thresholds: [200, 1000], edge: 0.01 });
    const bare = encodeState(own, emptyState(own)).toString("latin1");
    const unknown = Buffer.from(bare.replace("k7@1", "k7@2"), "latin1");
    expect(() => modelOfState(unknown)).toThrow("expected a state of k7@1");
  });
});
