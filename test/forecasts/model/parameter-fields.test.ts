import { describe, expect, it } from "vitest";
import {
  PARAMETER_FIELDS,
  parameterFileOf,
  type ParameterName,
} from "../../../src/forecasts/model/parameter-fields.ts";
import { readParameterFile } from "../../../src/forecasts/model/parameter-file.ts";
import { namedParameters } from "../../../src/forecasts/model/parameter-set.ts";
import { K7_1 } from "../../../src/forecasts/model/parameters.ts";

/** A set that differs from K7 in every value. */
const OTHER = namedParameters({
  longRunPrior: 1,
  theoryPrior: 2,
  recentPrior: 3,
  markovPrior: 4,
  hazardPrior: 5,
  theoryDecays: [0.5, 0.6],
  recentDecay: 0.7,
  share: 0.1,
  priorWeights: [0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
  x0Hundredths: 150,
  assumedEdge: 0.01,
  gapBinEnds: [1],
});

describe("the fields of parameters", () => {
  it("show the values of k7@1, of every parameter", () => {
    const typed = Object.fromEntries(PARAMETER_FIELDS.map(({ name, standard }) => [name, standard]));
    expect(readParameterFile(parameterFileOf(typed) ?? "", OTHER)).toEqual({ parameters: K7_1, thresholds: null });
  });

  it("change nothing while they are empty", () => {
    expect(parameterFileOf({})).toBeNull();
    expect(parameterFileOf({ share: " " })).toBeNull();
  });

  it("take several numbers with commas or spaces between them", () => {
    expect(readParameterFile(parameterFileOf({ thresholds: "1.5, 3 20" }) ?? "", OTHER)).toEqual({
      parameters: OTHER,
      thresholds: [150, 300, 2_000],
    });
  });

  it.each<[ParameterName, string, string]>([
    ["share", "a lot", "share: expected numbers such as 0.00001, found a lot"],
    ["x0", "1.5\nshare: 0", "x0: expected numbers such as 1.1, found 1.5\nshare: 0"],
    ["thresholds", "1e999", "thresholds: expected numbers such as 2, 10, found 1e999"],
    ["prior_weights", "1, 2", "prior_weights: expected 7 numbers, found 2"],
  ])("refuse for %s what is not numbers: %s", (name, text, message) => {
    expect(() => parameterFileOf({ [name]: text })).toThrow(message);
  });

  it("leave the bounds to the parameter file", () => {
    expect(() => readParameterFile(parameterFileOf({ share: "2" }) ?? "", K7_1)).toThrow("share: ");
    expect(() => readParameterFile(parameterFileOf({ recent_half_life: "1, 2" }) ?? "", K7_1)).toThrow(
      "recent_half_life: ",
    );
  });
});
