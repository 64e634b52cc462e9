import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import lighthouse, { desktopConfig } from "lighthouse";
import { openBrowser } from "../support/browser.ts";
import { startInstance } from "./instance.ts";
import { SITE_PAGES } from "./pages.ts";

const USAGE = `Usage: npm run lighthouse -- [--desktop] [--out DIR] [--only TEXT] [--url URL]

Measures every public page with Lighthouse (mobile, or desktop, with simulated throttling) and ends with 1 when a category is below 95.
Without --url it starts an instance of its own.

Options:
  --desktop   as on a desktop computer: a wide window, a fast network and processor
  --out DIR   keeps the whole reports as JSON
  --only TEXT only pages whose name contains this
  --url URL   an instance that runs already
  --help      show this`;
const CATEGORIES = ["performance", "accessibility", "best-practices", "seo"];
const LEAST = 95;
/** Rounds and forecasts to show, before the first page is measured. */
const WARM_MS = 75_000;

const { values } = parseArgs({
  options: {
    desktop: { type: "boolean", default: false },
    out: { type: "string" },
    only: { type: "string", default: "" },
    url: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}
const own = values.url === undefined ? await startInstance() : null;
const url = values.url ?? own?.url ?? "";
const port = await freePort();
// --opt: as visitors have it, unlike the tests
const browser = await openBrowser([`--remote-debugging-port=${port}`, "--js-flags=--opt"]);
const poor: string[] = [];
try {
  if (own !== null) await delay(WARM_MS);
  if (values.out !== undefined) await mkdir(values.out, { recursive: true });
  for (const [name, path] of Object.entries(SITE_PAGES)) {
    // robots.txt keeps filtered views out of search results, and a page that is not there has no place in them
    if (name === "missing" || path.includes("?") || !name.includes(values.only)) continue;
    await measure(name, path);
  }
} finally {
  await browser.close();
  await own?.stop();
}
if (poor.length > 0) {
  console.log(`below ${LEAST}:\n${poor.join("\n")}`);
  process.exitCode = 1;
}

async function measure(name: string, path: string): Promise<void> {
  const flags = { port, output: "json", logLevel: "error", onlyCategories: CATEGORIES } as const;
  const result = await lighthouse(url + path, flags, values.desktop ? desktopConfig : undefined);
  if (result === undefined) throw new Error(`expected a report about ${path}, got none`);
  const { lhr } = result;
  const scores = CATEGORIES.map((category) => Math.round((lhr.categories[category]?.score ?? 0) * 100));
  console.log(
    `${path.padEnd(36)} ${scores
      .map(String)
      .map((score) => score.padStart(4))
      .join("")}`,
  );
  if (values.out !== undefined) await writeFile(join(values.out, `${name}.json`), JSON.stringify(lhr));
  if (scores.every((score) => score >= LEAST)) return;
  const failed = Object.values(lhr.audits).filter(
    ({ score, scoreDisplayMode }) => score !== null && score < 0.9 && scoreDisplayMode !== "informative",
  );
  poor.push(`${path}: ${scores.join(" ")}: ${failed.map(({ id }) => id).join(", ")}`);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
