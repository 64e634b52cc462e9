import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { palettes } from "../../src/houses/settings/palettes.ts";

const css = readFileSync(new URL("../../src/frame/styles/tokens.css", import.meta.url), "utf8");
type Rgb = readonly [number, number, number];

/** Full color blindness of three kinds in linear RGB (Machado, Oliveira and Fernandes, 2009). */
const VISIONS: Record<string, readonly Rgb[]> = {
  full: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};
/** Two large areas that differ by this in CIELAB are told apart without a second look; 2.3 is just noticeable. */
const LEAST_DISTANCE = 20;

const THEMES = ["light", "dark"] as const;
const names = [...new Set(Object.values(palettes).flatMap(({ bands }) => bands.map(({ name }) => name)))];

/** A token's color in a theme. */
function token(name: string, theme: (typeof THEMES)[number]): Rgb {
  const value = new RegExp(`--${name}: ([^;]+);`).exec(css)?.[1] ?? "";
  const found = value.match(/#[0-9a-f]{6}/g) ?? [];
  const hex = (theme === "dark" ? found.at(-1) : found[0]) ?? expect.fail(`no color --${name} in tokens.css`);
  const channel = (at: number) => linear(Number.parseInt(hex.slice(at, at + 2), 16) / 255);
  return [channel(1), channel(3), channel(5)];
}

function linear(value: number): number {
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

function seen(color: Rgb, vision: readonly Rgb[]): Rgb {
  const mix = ([r, g, b]: Rgb) => Math.min(1, Math.max(0, r * color[0] + g * color[1] + b * color[2]));
  const [red, green, blue] = vision.map(mix);
  return [red ?? 0, green ?? 0, blue ?? 0];
}

/** CIELAB of a linear RGB color (D65). */
function lab([r, g, b]: Rgb): Rgb {
  const f = (t: number) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
  const y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
  const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function distance(a: Rgb, b: Rgb): number {
  const [one, other] = [lab(a), lab(b)];
  return Math.hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2]);
}

function contrast(a: Rgb, b: Rgb): number {
  const luminance = ([red, green, blue]: Rgb) => 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  const [low, high] = [luminance(a), luminance(b)].toSorted((x, y) => x - y);
  return ((high ?? 0) + 0.05) / ((low ?? 0) + 0.05);
}

describe.each(THEMES)("tokens in %s", (theme) => {
  it("have a color for every color of a built-in palette, with readable text on it", () => {
    for (const name of names) {
      expect(contrast(token(`round-${name}`, theme), token(`round-${name}-text`, theme)), name).toBeGreaterThan(4.5);
    }
  });

  it.each(Object.entries(VISIONS))("tell the colors of a palette apart with vision: %s", (_, vision) => {
    for (const [house, { bands }] of Object.entries(palettes)) {
      for (const { name: a } of bands) {
        for (const { name: b } of bands.filter(({ name }) => name !== a)) {
          const [one, other] = [token(`round-${a}`, theme), token(`round-${b}`, theme)];
          expect(distance(seen(one, vision), seen(other, vision)), `${house}: ${a}, ${b}`).toBeGreaterThan(
            LEAST_DISTANCE,
          );
        }
      }
    }
  });

  it("give text and the words of a tone a contrast of 4.5 on every surface they stand on", () => {
    const pairs = [
      ...["text", "muted", "accent", "good", "warn", "bad", "info"].flatMap((ink) =>
        ["surface", "sunken", "raised", "hover"].map((ground) => [ink, ground] as const),
      ),
      ...["good", "warn", "bad", "info", "accent"].map((ink) => [ink, `${ink}-soft`] as const),
      ["on-accent", "accent"] as const,
    ];
    const poor = pairs.filter(([ink, ground]) => contrast(token(ink, theme), token(ground, theme)) < 4.5);
    expect(poor).toEqual([]);
  });
});
