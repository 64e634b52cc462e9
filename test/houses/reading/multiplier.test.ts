import fc from "fast-check";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import * as multiplier from "../../../src/houses/reading/multiplier.ts";
import { listExamples, runExample } from "../../support/examples.ts";

const { parseMultiplier } = multiplier;
const plain = { scale: 1, instant: [] };

const rawFormat = z.object({
  house: z.string(),
  kind: z.string(),
  raw: z.unknown(),
  centi: z.number().optional(),
  centi_floor: z.number().optional(),
  reject: z.boolean().optional(),
});
const fixture = new URL("../../fixtures/raw_formats.json", import.meta.url);
const formats = z.array(rawFormat).parse(JSON.parse(readFileSync(fixture, "utf8")));

const text = (raw: unknown) => z.string().parse(raw);
const field = (raw: unknown, name: string) => z.record(z.string(), z.unknown()).parse(raw)[name];

/** The multiplier of an entry of raw_formats.json as an adapter hands it over, with the settings of that house. */
const MULTIPLIER_OF: Record<string, (raw: unknown) => { raw: unknown; scale?: number; instant?: (string | number)[] }> =
  {
    "aviator displayed text": (raw) => ({ raw }),
    "aviator-betika csv row": (raw) => ({ raw: field(raw, "result") }),
    "spribe binary field": (raw) => ({ raw: Buffer.from(text(raw).split(" ").at(-1) ?? "", "hex").readDoubleBE() }),
    "blaze socket payload": (raw) => ({ raw: field(raw, "crash_point"), instant: ["0"] }),
    "stake saved row": (raw) => ({ raw: Number(text(raw).split(",")[2]) }),
    "bcgame history item": (raw) => ({ raw: field(JSON.parse(text(field(raw, "gameDetail"))), "rate") }),
    "bcgame verifier output": (raw) => ({ raw }),
    "ethcrash.io json field": (raw) => ({ raw: field(raw, "game_crash"), scale: 0.01, instant: [0] }),
    "ethercrash page text": (raw) => ({ raw: text(raw).split("@")[1] }),
    "jetx dirty value": (raw) => ({ raw }),
  };

function parseFormat({ house, kind, raw }: z.infer<typeof rawFormat>) {
  const read = MULTIPLIER_OF[`${house} ${kind}`];
  if (read === undefined) throw new Error(`expected a way to read the multiplier of ${house} ${kind}`);
  const { raw: value, scale = 1, instant = [] } = read(raw);
  return parseMultiplier(value, { scale, instant });
}

describe("a value seen in the wild", () => {
  const good = formats.filter((format) => (format.centi ?? format.centi_floor) !== undefined);
  test.each(good)("is read: $house $kind", (format) => {
    expect(parseFormat(format)).toMatchObject({ ok: true, hundredths: format.centi ?? format.centi_floor });
  });

  test.each(formats.filter(({ reject }) => reject))("is refused: $house $kind", (format) => {
    expect(parseFormat(format)).toMatchObject({ ok: false, code: "not_a_number" });
  });

  // bustabit's pages, a rule in raw_formats.json: whole numbers have no decimals, thousands have a comma
  test.each([
    ["1x", 100],
    ["2x", 200],
    ["185.04x", 18_504],
    ["1,024x", 102_400],
    ["1,024.50x", 102_450],
    ["12,345x", 1_234_500],
  ])("bustabit page %s", (raw, hundredths) => {
    expect(parseMultiplier(raw, plain)).toMatchObject({ ok: true, hundredths });
  });
});

describe("a multiplier", () => {
  test.each([
    [1.87, 1, 187],
    ["1.87", 1, 187],
    ["1,87x", 1, 187],
    ["1,8", 1, 180],
    [" 1.87 X ", 1, 187],
    ["1.87×", 1, 187],
    ["1,234.56x", 1, 123_456],
    ["1.234,56", 1, 123_456],
    ["1.234.567", 1, 123_456_700],
    ["1,234,567.8", 1, 123_456_780],
    ["1234,56", 1, 123_456],
    ["1.234", 1, 123],
    ["1,2345", 1, 123],
    [187, 0.01, 187],
    ["187", 0.01, 187],
    [1870, 0.001, 187],
    [18_799_999, 1e-7, 187],
    ["1.9999999999999999", 1, 199],
    [1.9999, 1, 199],
    [1.005, 1, 100],
    [8.29, 1, 829], // 8.29 * 100 is 828.9999999999999 in floating point
    [1.1, 1, 110],
    ["1e2", 1, 10_000],
    ["150e-2", 1, 150],
    [1, 1, 100],
    [1e9, 1, 100_000_000_000],
  ])("%j with scale %d is %d hundredths", (raw, scale, hundredths) => {
    expect(parseMultiplier(raw, { scale, instant: [] })).toMatchObject({ ok: true, hundredths });
  });

  test("keeps the text as received", () => {
    expect(parseMultiplier("1,870x", plain)).toMatchObject({ hundredths: 187_000, rawValue: "1,870x" });
    expect(parseMultiplier(6.6402817, plain)).toMatchObject({ rawValue: "6.6402817" });
  });

  test.each([
    [0, "impossible_multiplier"],
    ["0.00", "impossible_multiplier"],
    [0.99, "impossible_multiplier"],
    ["0.999999999", "impossible_multiplier"],
    [-1.5, "impossible_multiplier"],
    ["-2x", "impossible_multiplier"],
    [1e308, "impossible_multiplier"],
    ["1e308", "impossible_multiplier"],
    ["1e-308", "impossible_multiplier"],
    ["1e999999", "impossible_multiplier"],
    [1_000_000_001, "impossible_multiplier"],
    ["1000000000.01", "impossible_multiplier"],
    [Number.NaN, "not_a_number"],
    [Number.POSITIVE_INFINITY, "not_a_number"],
    ["NaN", "not_a_number"],
    ["Infinity", "not_a_number"],
    ["∞", "not_a_number"],
    ["∞x", "not_a_number"],
    ["x", "not_a_number"],
    [" ", "not_a_number"],
    ["1.87 2.04", "not_a_number"],
    ["2.29\u20281.29", "not_a_number"],
    ["1.87\u2028", "not_a_number"],
    ["1.8.7", "not_a_number"],
    ["12,34,56", "not_a_number"],
    ["1234,567", "not_a_number"],
    ["0,123,456", "not_a_number"],
    ["1..87", "not_a_number"],
    [".5", "not_a_number"],
    ["5.", "not_a_number"],
    ["0x1f", "not_a_number"],
    ["+1.87", "not_a_number"],
    ["١٫٨٧", "not_a_number"],
    ["1.87xx", "not_a_number"],
    ["9".repeat(65), "not_a_number"],
    [true, "not_a_number"],
    [{ value: 1.87 }, "not_a_number"],
    [[1.87], "not_a_number"],
    ["", "missing_multiplier"],
    [null, "missing_multiplier"],
    [undefined, "missing_multiplier"],
  ])("%j is refused as %s", (raw, code) => {
    const parsed = parseMultiplier(raw, plain);
    expect(parsed).toMatchObject({ ok: false, code });
    expect(!parsed.ok && parsed.reason).toMatch(/^expected .*, found /);
  });

  test("of zero is refused with the advice to declare it, if it is not an instant crash", () => {
    expect(parseMultiplier("0", plain)).toMatchObject({ reason: expect.stringContaining("feed.instant") });
  });

  test.each([
    ["0", ["0"]],
    [0, ["0"]],
    ["0.00x", [0]],
    ["0", [0]],
    [1, [1]],
    [0.5, ["0.50"]],
    ["bust", ["bust"]],
  ])("%j declared as instant by %j is 1.00 with the raw value kept", (raw, instant) => {
    expect(parseMultiplier(raw, { scale: 1, instant })).toEqual({ ok: true, hundredths: 100, rawValue: String(raw) });
  });

  test("is compared with instant values before it is scaled", () => {
    expect(parseMultiplier(1, { scale: 0.01, instant: [1] })).toMatchObject({ ok: true, hundredths: 100 });
    expect(parseMultiplier(100, { scale: 0.01, instant: [1] })).toMatchObject({ ok: true, hundredths: 100 });
    expect(parseMultiplier(2, { scale: 0.01, instant: [1] })).toMatchObject({ ok: false });
  });

  test("below 1.00 is named as a multiplier, with what the house sent in its own unit", () => {
    expect(parseMultiplier(42, { scale: 0.01, instant: [] })).toMatchObject({
      ok: false,
      reason: "expected 1.00 or more, found 0.42 (sent as 42)",
    });
    expect(parseMultiplier("0.5", { scale: 1, instant: [] })).toMatchObject({
      ok: false,
      reason: 'expected 1.00 or more, found "0.5"',
    });
  });

  test("of any whole hundredths is read back from each way to write it", () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 100_000_000_000 }), (hundredths) => {
        const decimal = `${Math.floor(hundredths / 100)}.${String(hundredths % 100).padStart(2, "0")}`;
        const thousands = decimal.replace(/\B(?=(\d{3})+\.)/g, ",");
        const german = thousands.replaceAll(/[.,]/g, (sign) => (sign === "." ? "," : "."));
        for (const raw of [decimal, `${decimal}x`, thousands, german, hundredths / 100]) {
          expect(parseMultiplier(raw, plain)).toMatchObject({ ok: true, hundredths });
        }
        expect(parseMultiplier(hundredths, { scale: 0.01, instant: [] })).toMatchObject({ ok: true, hundredths });
      }),
    );
  });

  test("of anything at all is a value or a refusal, never thrown", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9.,ex +-]{1,20}$/), fc.anything()), (raw) => {
        const parsed = parseMultiplier(raw, { scale: 0.01, instant: ["0", 0] });
        expect(parsed.ok ? parsed.hundredths >= 100 : parsed.reason !== "").toBe(true);
      }),
    );
  });
});

test.each(listExamples("src/houses/reading/multiplier.ts").map((example) => [example.title, example] as const))(
  "the examples of %s hold",
  (_, example) => {
    const claims = runExample(example, multiplier);
    expect(claims.length).toBeGreaterThan(0);
    expect(claims.map(({ actual }) => actual)).toEqual(claims.map(({ expected }) => expected));
  },
);
