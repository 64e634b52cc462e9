import { afterAll, describe, expect, it } from "vitest";
import { createDrawer } from "../../src/charts/draw.ts";
import { callsPlot, ratePlot } from "../../src/charts/over-time.ts";
import { corpPlot, reliabilityPlot } from "../../src/charts/reliability.ts";
import { skillPlot } from "../../src/charts/skill.ts";
import * as tidy from "../../src/charts/tidy.ts";
import { waitsPlot } from "../../src/charts/waits.ts";
import { listExamples, runExample } from "../support/examples.ts";

const drawer = createDrawer();
afterAll(() => drawer.close());

const point = { of: "a", stated: 0.2, observed: 0.3, low: 0.1, high: 0.5, n: 20 };
const rate = { at: "2026-11-21T04:00:00Z", rate: 0.8, low: 0.7, high: 0.9, stated: 0.81, baseline: 0.79, n: 40 };

describe("a plot", () => {
  it.each([
    ["reliability", reliabilityPlot("what <was> stated", [point, { ...point, of: "b", stated: 0.7 }])],
    ["CORP", corpPlot("steps", [{ of: "pink", from: 0.05, to: 0.12, rate: 0.1 }])],
    ["rates", ratePlot("rates", [rate, { ...rate, at: "2026-11-21T05:00:00Z" }], "hour")],
    ["calls", callsPlot("calls", [{ date: "2026-11-21", requests: 3 }])],
    ["no calls", callsPlot("no calls", [{ date: "2026-11-21", requests: 0 }])],
    ["one rate", ratePlot("one rate", [rate], "day")],
    ["waits", waitsPlot("waits", 12, [1.2, 0.8])],
    ["nothing", reliabilityPlot("nothing", [])],
  ])("is one picture with a name, in the colors of its page, that a strict policy lets stand: %s", async (_, plot) => {
    const svg = await drawer.draw(plot);
    expect(svg).toMatch(/^<svg role="img" aria-label="[^"<]+"/);
    expect(svg).toContain("<desc>");
    expect(svg).not.toMatch(/ style=|<style|<script|NaN|undefined|<was>/);
    expect(svg.match(/ (?:role|aria-[a-z]+)=/g)).toHaveLength(2);
    expect(svg).toContain("currentColor");
    for (const [color = ""] of svg.matchAll(/(?:fill|stroke)="[^"]+"/g))
      expect(color).toMatch(/"(none|transparent|currentColor|var\(--[a-z]+, currentColor\))"$/);
  });

  it("of one rate shows what was stated and the baseline too, each as a point", async () => {
    const svg = await drawer.draw(ratePlot("one rate", [rate], "day"));
    for (const name of ["--warn", "--muted"]) expect(svg).toMatch(new RegExp(`A[^"]*" fill="var\\(${name},`));
  });

  it.each([
    ["hour", (place: number) => `2026-11-21T0${place}:00:00.0000000Z`],
    ["day", (place: number) => `2026-11-0${place}T00:00:00.0000000Z`],
  ] as const)("of rates draws no line or band over a missing %s, and a single one as points", async (by, at) => {
    const segmentsOf = async (places: readonly number[]) => {
      const points = places.map((place) => ({ ...rate, at: at(place) }));
      const svg = await drawer.draw(ratePlot("rates", points, by));
      const lengths = (paths: RegExp) =>
        [...svg.matchAll(paths)].map(([, path = ""]) => path.split("L").length).toSorted((a, b) => a - b);
      return {
        lines: lengths(/<path d="(M[^"]*L[^"]*)" stroke="[^"]+" stroke-width="2"/g),
        bands: lengths(/<path d="(M[^"]*L[^"]*Z)" fill="[^"]+" fill-opacity="0.18"/g).filter((n) => n > 2),
        singles: [...svg.matchAll(/A[^"]*" fill="var\(--(warn|muted),/g)].length,
      };
    };
    expect(await segmentsOf([1, 2, 3, 4])).toEqual({ lines: [4, 4, 4], bands: [8], singles: 0 });
    expect(await segmentsOf([1, 2, 4, 5, 6])).toEqual({ lines: [2, 2, 2, 3, 3, 3], bands: [4, 6], singles: 0 });
    expect(await segmentsOf([1, 2, 4, 6, 7])).toEqual({ lines: [2, 2, 2, 2, 2, 2], bands: [4, 4], singles: 2 });
  });

  it("of calls names its days as the plots of rates do", async () => {
    const days = Array.from({ length: 31 }, (_, at) => ({
      date: `2026-10-${String(at + 1).padStart(2, "0")}`,
      requests: at,
    }));
    const svg = await drawer.draw(callsPlot("days", days));
    const names = [...svg.matchAll(/>(\d+ Oct)<\/text>/g)].map(([, name]) => name);
    expect(names).toEqual(["3 Oct", "7 Oct", "11 Oct", "15 Oct", "19 Oct", "23 Oct", "27 Oct", "31 Oct"]);
  });

  it("of skills describes the constant and how many points have an interval", () => {
    const points = [
      { of: "ours", skill: 0.01, low: -0.01, high: 0.03 },
      { of: "last 20 rounds", skill: -0.04, low: -0.04, high: -0.04 },
    ];
    expect(skillPlot("skill", points).description).toBe(
      "Skill against the best constant probabilities in hindsight. Points: 2; with a 95 % interval: 1. The dashed line is no skill.",
    );
  });

  it("that cannot be drawn is an error, and the next one is drawn", async () => {
    const broken = { title: "x", description: "y", spec: { mark: "no such mark" } as never };
    await expect(drawer.draw(broken)).rejects.toThrow("could not be drawn");
    expect(await drawer.draw(callsPlot("again", []))).toContain("<svg");
  });

  it("is drawn once, and again by a new thread when its own has ended", async () => {
    const own = createDrawer();
    const plot = callsPlot("kept", [{ date: "2026-11-21", requests: 3 }]);
    const first = await own.draw(plot);
    await own.close();
    expect(await own.draw(plot)).toBe(first);
    expect(await own.draw(callsPlot("another", []))).toContain("another");
    const ended = own.draw(callsPlot("asked of the thread that ends", []));
    const closing = own.close();
    const next = own.draw(callsPlot("asked of the next", []));
    await expect(ended).rejects.toThrow("has ended");
    expect(await next).toContain("asked of the next");
    await closing;
    await own.close();
  });
});

it("is cleaned as its example shows", () => {
  const claims = listExamples("src/charts/tidy.ts").flatMap((example) => runExample(example, tidy));
  expect(claims).toHaveLength(1);
  for (const { line, actual, expected } of claims) expect(actual, line).toBe(expected);
});
