import type { Page } from "playwright-core";

/** Files and pages that open in a window of their own. */
const NO_PAGE = /\.(?:csv|json)$|\/body$/;

/**
 * The address of each page of a list, by a name made of its path: parameters are filled in from links of the pages before,
 * which begin with those of `from`. `missing` are pages to which no link led, or which require a query.
 */
export async function findPages(
  page: Page,
  { url, base, paths, from = [] }: { url: string; base: string; paths: readonly string[]; from?: readonly string[] },
): Promise<{ scenes: Record<string, string>; missing: string[] }> {
  const links = new Set<string>();
  const scenes: Record<string, string> = {};
  const refused: string[] = [];
  const plain = new Set(paths.map((path) => base + path));
  for (const address of from) await collect(address);
  let open = paths.filter((path) => !NO_PAGE.test(path));
  for (;;) {
    const found = open.flatMap((path) => {
      const address = addressOf(base + (path === "/" ? "" : path), links, plain);
      return address === undefined ? [] : [{ path, address }];
    });
    if (found.length === 0) return { scenes, missing: [...open, ...refused] };
    for (const { path, address } of found) {
      if (await collect(address)) scenes[nameOf(base + path)] = address;
      else refused.push(path); // it requires a query
    }
    open = open.filter((path) => !found.some((one) => one.path === path));
  }

  /** Opens a page and keeps its links; false if it is refused. */
  async function collect(address: string): Promise<boolean> {
    const response = await page.goto(url + address);
    for (const link of await linksOf(page, base)) links.add(link);
    return response?.ok() === true;
  }
}

/** The first link of a pattern that is not the address of a page without parameters. */
function addressOf(path: string, links: ReadonlySet<string>, plain: ReadonlySet<string>): string | undefined {
  if (!path.includes(":")) return path;
  const pattern = new RegExp(`^${path.replaceAll(/:\w+/g, "[^/?]+")}(\\?.*)?$`);
  return [...links].find((link) => pattern.test(link) && !plain.has(link.split("?")[0] ?? ""));
}

function nameOf(path: string): string {
  return path
    .slice(1)
    .replaceAll(/\/:?|\/$/g, "-")
    .replace(/-$/, "");
}

async function linksOf(page: Page, base: string): Promise<string[]> {
  const links: unknown = await page.evaluate(
    `[...document.querySelectorAll('a[href^="${base}"]')].map((link) => link.getAttribute("href").split("#")[0])`,
  );
  return links as string[];
}
