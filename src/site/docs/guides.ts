import type { SitePage } from "../send-page.ts";
import { samplesOf } from "./samples.ts";
import { sidebar } from "./sidebar.ts";

const POLL_JAVASCRIPT = (site: string) => `const url = "${site}/api/v1/rounds?limit=20";
const { env } = process;
const key = env.ROUNDHOUSE_KEY ?? "rh_live_YOUR_KEY";
let etag = "";
for (;;) {
  const response = await fetch(url, { headers: { "X-Api-Key": key, "If-None-Match": etag } });
  if (response.status === 200) {
    etag = response.headers.get("etag") ?? "";
    console.log((await response.json()).tables);
  }
  if (response.status === 401 || response.status === 403) throw new Error(await response.text());
  const isError = response.status >= 400;
  const wait = Number(response.headers.get("retry-after") ?? (isError ? 5 : 1)); // a 304 is free: nothing changed
  await new Promise((resolve) => setTimeout(resolve, wait * 1000));
}`;
const POLL_PYTHON = (site: string) => `import json, os, time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

url = "${site}/api/v1/rounds?limit=20"
key = os.environ.get("ROUNDHOUSE_KEY", "rh_live_YOUR_KEY")
etag = ""
while True:
    request = Request(url, headers={"X-Api-Key": key, "If-None-Match": etag})
    wait = 1
    try:
        with urlopen(request, timeout=10) as response:
            etag = response.headers["ETag"]
            print(json.load(response)["tables"])
    except HTTPError as error:
        if error.code in (401, 403):
            raise
        if error.code != 304:  # a 304 is free: nothing changed
            wait = int(error.headers.get("Retry-After", "5"))
    time.sleep(wait)`;

/** Guides of the documentation, by path. */
export function guidePages(site: string): Record<string, SitePage> {
  const page = (path: string, name: string, title: string, description: string, data: object = {}): SitePage => ({
    path,
    template: `docs/guides/${name}`,
    kind: "docs",
    sidebar,
    title,
    description,
    data: { site, ...data },
  });
  const pages = [
    page(
      "/docs/quick-start",
      "quick-start",
      "Quick start",
      "From sign-up to the first counted call of Roundhouse's API in five minutes: account, plan, key, request.",
      {
        games: samplesOf(`${site}/api/v1/games`, "games"),
        forecasts: samplesOf(`${site}/api/v1/forecasts`, "forecasts"),
      },
    ),
    page(
      "/docs/guides/polling",
      "polling",
      "Poll politely with ETags",
      "How to poll Roundhouse's API often without using up a quota: ETags, free 304 responses, and Retry-After.",
      {
        samples: [
          { name: "JavaScript", language: "javascript", text: POLL_JAVASCRIPT(site) },
          { name: "Python", language: "python", text: POLL_PYTHON(site) },
        ],
      },
    ),
    page(
      "/docs/guides/verify",
      "verify",
      "Verify a forecast yourself",
      "How to check that a forecast of Roundhouse was fixed before its round: its hash, the chain, and the signed log.",
    ),
    page(
      "/docs/guides/accuracy",
      "accuracy",
      "Recompute accuracy from the export",
      "How to recompute the published hit rates and skill of Roundhouse from its public export, without an account.",
    ),
  ];
  return Object.fromEntries(pages.map((one) => [one.path ?? "", one]));
}
