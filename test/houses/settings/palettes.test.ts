import { expect, test } from "vitest";
import { palettes } from "../../../src/houses/settings/palettes.ts";
import { houseSettings } from "../../../src/houses/settings/settings.ts";
import { parseMultiplier } from "../../../src/houses/reading/multiplier.ts";
import { colorOf, type Color } from "../../../src/rounds/colors.ts";
import { houseEntry, tableEntry } from "../../support/houses.ts";

/** The bands of a table that names this palette, in hundredths, as the configuration reads them. */
function paletteOf(colors: unknown): Color[] {
  const { settings } = houseEntry({ tables: [tableEntry({ colors })] });
  return (settings.tables[0]?.colors ?? []).map(({ name, below }) => ({
    name,
    below: below === undefined ? null : Math.round(below * 100),
  }));
}

/** The color of a value as a house sends it. */
function colorFor(raw: string, palette: string): string {
  const multiplier = parseMultiplier(raw, { scale: 1, instant: ["0"] });
  if (!multiplier.ok) throw new Error(multiplier.reason);
  return colorOf(multiplier.hundredths, paletteOf(palette));
}

test.each(Object.keys(palettes))("the palette %s is 2 to 8 bands that a table may have", (name) => {
  expect(paletteOf(name)).toEqual(paletteOf(palettes[name]?.bands));
});

test.each([
  ["aviator", "1.99", "blue", "2.00", "purple"],
  ["aviator", "9.99", "purple", "10.00", "pink"],
  ["bcgame", "1.99", "red", "2", "green"],
  ["bcgame", "9.9999", "green", "10", "moon"],
  ["blaze", "1.99", "black", "2.00", "green"],
  ["bustabit", "1.97", "red", "1.98", "green"],
  ["ethercrash", "1.99", "red", "2.00", "green"],
  ["jetx", "1.49", "blue", "1.5", "pink"],
  // raw numbers of Stake: 1.9999 is below 2
  ["stake", "1.9999", "blue", "2.0000001", "purple"],
  ["1xbet", "9.99", "purple", "10.00", "pink"],
  ["ours", "1.99", "blue", "2.00", "purple"],
])("on the palette %s, %s is %s and %s is %s", (palette, below, lower, at, higher) => {
  expect([colorFor(below, palette), colorFor(at, palette)]).toEqual([lower, higher]);
});

test.each(Object.keys(palettes))("an instant crash has the lowest color of %s", (name) => {
  expect(colorFor("0", name)).toBe(palettes[name]?.bands[0]?.name);
});

test("colors without a confirmed source are marked as ours, and there is one such palette", () => {
  const ours = Object.entries(palettes).filter(([, { whose }]) => whose === "ours");
  expect(ours.map(([name]) => name)).toEqual(["1xbet", "ethcrash-io", "lucky-jet", "roobet", "stake", "ours"]);
  const [{ bands } = { bands: [] }, ...others] = ours.map(([, palette]) => palette);
  expect(bands).toEqual([{ name: "blue", below: 2 }, { name: "purple", below: 10 }, { name: "pink" }]);
  for (const other of others) expect(other.bands).toEqual(bands);
});

test.each(["nope", "toString", ""])("a name that is no palette is refused with those there are: %j", (colors) => {
  const entry = houseEntry().entry;
  const result = houseSettings.safeParse({ ...entry, tables: [tableEntry({ colors })] });
  const [issue, ...others] = result.error?.issues ?? [];
  expect(others).toEqual([]);
  expect(issue).toMatchObject({
    path: ["tables", 0, "colors"],
    message: `expected bands or one of the palettes ${Object.keys(palettes).join(", ")}, found ${JSON.stringify(colors)}`,
  });
});
