import { join } from "node:path";
import type { Page } from "playwright-core";
import { overflow } from "../support/browser.ts";

const WIDTHS = [1280, 375] as const;
const SCHEMES = ["light", "dark"] as const;
/** A page that is longer than this is cut: what is below looks the same. */
const MOST_HEIGHT = 6_000;

/** Opens what a photo shows: a path, or steps that lead there and are done once for each width. */
export type Scene = string | ((page: Page) => Promise<unknown>);

/** Photographs scenes in both themes and widths. */
export interface Camera {
  /** Photographs each scene whose name is wanted. */
  shoot(page: Page, scenes: Readonly<Record<string, Scene>>): Promise<void>;
  /** Whether any of these would be photographed. */
  wants(...names: readonly string[]): boolean;
  photos(): number;
  /** Pages that are wider than their window, and errors of the browser's console. */
  faults(): readonly string[];
}

/** Makes a camera that writes `NAME-THEME-WIDTH.png` into a folder. `only` holds parts of names; one empty part means all. */
export function createCamera({ url, out, only }: { url: string; out: string; only: readonly string[] }): Camera {
  let photos = 0;
  const faults: string[] = [];
  const wants = (...names: readonly string[]) => names.some((name) => only.some((part) => name.includes(part)));

  async function shootOne(page: Page, name: string, scene: Scene): Promise<void> {
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      if (typeof scene === "string") await page.goto(url + scene);
      else await scene(page);
      if ((await overflow(page)) > 0) faults.push(`${name} is wider than ${width} px`);
      const height = Number(await page.evaluate("document.documentElement.scrollHeight"));
      await page.setViewportSize({ width, height: Math.min(MOST_HEIGHT, Math.max(900, height)) });
      for (const colorScheme of SCHEMES) {
        await page.emulateMedia({ colorScheme });
        await page.screenshot({ path: join(out, `${name}-${colorScheme}-${width}.png`) });
        photos += 1;
      }
    }
  }

  return {
    wants,
    photos: () => photos,
    faults: () => faults,
    async shoot(page, scenes) {
      for (const [name, scene] of Object.entries(scenes)) {
        if (!wants(name)) continue;
        // one page that fails must not cost the photos of all others
        await shootOne(page, name, scene).catch((error: unknown) => faults.push(`${name}: ${String(error)}`));
      }
    },
  };
}
