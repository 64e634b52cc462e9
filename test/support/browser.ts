import { existsSync } from "node:fs";
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import axe from "axe-core";
import { type Browser, chromium as driver, type Page } from "playwright-core";
import { z } from "zod";

/** What axe-core found wrong with a page. */
const violations = z.array(
  z.object({
    id: z.string(),
    help: z.string(),
    nodes: z.array(z.object({ html: z.string(), failureSummary: z.string() })),
  }),
);
const packageFile = z.object({ version: z.string() });
const here = createRequire(import.meta.url);

/**
 * A real Chromium, out of its npm package: no system package is needed, not even a font. Close it when done. Of the
 * flags that the package proposes none is taken: some switch off the very rules that pages rely on.
 */
export async function openBrowser(flags: readonly string[] = []): Promise<Browser> {
  const folder = await unpack();
  return driver.launch({
    executablePath: join(folder, "chromium"),
    // no optimizing compiler: pages end before what it compiles has paid for itself
    args: ["--no-sandbox", "--disable-gpu", "--font-render-hinting=none", "--js-flags=--no-opt", ...flags],
    env: { ...process.env, FONTCONFIG_PATH: join(folder, "fonts"), LD_LIBRARY_PATH: join(folder, "al2023/lib") },
  });
}

/**
 * Lists accessibility violations of a page, one line for each element, by axe-core. If a page was checked in one theme,
 * another theme changes its colors alone: `colorsAlone` checks these, in half the time.
 */
export async function accessibilityFaults(
  page: Page,
  { colorsAlone = false }: { colorsAlone?: boolean } = {},
): Promise<string[]> {
  await page.waitForLoadState(); // a click ends when the next page begins, before it has any element
  // evaluated by the driver, which the page's content policy does not stand against, unlike a script tag
  if ((await page.evaluate("typeof axe")) === "undefined") await page.evaluate(axe.source);
  const options = { resultTypes: ["violations"], ...(colorsAlone && { runOnly: ["color-contrast"] }) };
  const found: unknown = await page.evaluate(
    `axe.run(${JSON.stringify(options)}).then(({ violations }) => violations)`,
  );
  return violations
    .parse(found)
    .flatMap(({ id, help, nodes }) => nodes.map((node) => `${id} (${help}): ${node.html}: ${node.failureSummary}`));
}

/** Waits for the outcome of an action. A page that is being left may still show the outcome of the action before. */
export async function waitForToast(page: Page, text: string | RegExp): Promise<void> {
  await page.getByRole("status").filter({ hasText: text }).waitFor();
}

/** By how many pixels a page is wider than its window: 0 if it needs no horizontal scrolling. */
export async function overflow(page: Page): Promise<number> {
  await page.waitForLoadState(); // without its style it has another width
  const width = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
  return z.number().parse(await page.evaluate(width));
}

/**
 * The folder with the browser and its fonts, unpacked once on a machine (1.3 s) and in one piece: test files run at the
 * same time, and the package itself takes whatever file is there for a whole one.
 */
async function unpack(): Promise<string> {
  const packageFolder = join(here.resolve("@sparticuz/chromium"), "../..");
  const text = await readFile(join(packageFolder, "package.json"), "utf8");
  const folder = join(tmpdir(), `roundhouse-browser-${packageFile.parse(JSON.parse(text)).version}`);
  if (existsSync(folder)) return folder;
  const draft = await mkdtemp(`${folder}-`);
  const before = process.env["TMPDIR"];
  process.env["TMPDIR"] = draft; // where the package unpacks
  try {
    const { default: chromium, inflate } = await import("@sparticuz/chromium");
    await chromium.executablePath();
    // the libraries that it needs in addition to those of every system (NSS, expat), which it unpacks by itself only at Amazon's
    await inflate(join(packageFolder, "bin/al2023.tar.br"));
    // the package's own looks for its fonts elsewhere, and a browser that finds none at all ends
    await writeFile(join(draft, "fonts/fonts.conf"), fontsIn(join(folder, "fonts")));
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
  }
  await rename(draft, folder).catch(() => rm(draft, { recursive: true })); // another was faster
  return folder;
}

/** Settings of fontconfig that know the fonts of one folder. */
function fontsIn(folder: string): string {
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${folder}</dir>
  <cachedir>${folder}/cache</cachedir>
</fontconfig>
`;
}
