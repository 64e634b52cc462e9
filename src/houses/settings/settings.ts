import { z } from "zod";
import { adapterOf, adapters, type AdapterName } from "../adapters/index.ts";
import type { FeedOptions } from "../contract.ts";
import { fairnessProblem, fairnessSettings } from "../fairness/settings.ts";
import { NAME } from "./name.ts";
import { palettes } from "./palettes.ts";

/** The default timeout of a house for one poll. */
export const DEFAULT_TIMEOUT_MS = 5_000;

const slug = z.string().regex(new RegExp(`^${NAME}$`), {
  error: "expected lower case letters, digits, - or _, at most 64, beginning with a letter or digit",
});

const headerName = z.string().regex(/^[A-Za-z0-9-]{1,64}$/, {
  error: "expected a header name of at most 64 letters, digits and -",
});
const headerValue = z
  .string()
  .max(4096)
  .regex(/^[\t\x20-\x7e]*$/, { error: "expected ASCII characters on one line" });

/** A band of multipliers: below a bound, or the last one, which has none. */
const color = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, { error: "expected a short lower case name" }),
  below: z
    .number()
    .gt(1)
    .max(1e9)
    .refine((value) => Math.abs(value * 100 - Math.round(value * 100)) < 1e-6, {
      error: "expected at most two decimals",
    })
    .optional(),
});

const bands = z
  .array(color)
  .min(2, { error: "expected 2 to 8 colors" })
  .max(8, { error: "expected 2 to 8 colors" })
  .superRefine((given, context) => {
    given.forEach((band, index) => {
      const previous = given[index - 1];
      if (given.findIndex((other) => other.name === band.name) !== index) {
        context.addIssue({ code: "custom", path: [index, "name"], message: `the color ${band.name} is already there` });
      }
      if (index === given.length - 1) {
        if (band.below !== undefined) {
          context.addIssue({ code: "custom", path: [index, "below"], message: "the last color has no upper bound" });
        }
      } else if (band.below === undefined) {
        context.addIssue({ code: "custom", path: [index, "below"], message: "only the last color may have no bound" });
      } else if (previous?.below !== undefined && band.below <= previous.below) {
        context.addIssue({
          code: "custom",
          path: [index, "below"],
          message: `colors overlap: ${band.name} ends at ${band.below}, ${previous.name} before it at ${previous.below}`,
        });
      }
    });
  });

/** Bands, or the name of a palette. */
const colors = z.preprocess((given, context) => {
  if (typeof given !== "string") return given;
  const palette = Object.hasOwn(palettes, given) ? palettes[given] : undefined;
  if (palette !== undefined) return palette.bands;
  const message = `expected bands or one of the palettes ${Object.keys(palettes).join(", ")}, found ${JSON.stringify(given.slice(0, 40))}`;
  context.addIssue({ code: "custom", message });
  return z.NEVER;
}, bands);

/** Games and houses whose adapter an operator may look for, and why there is none. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["rollbit", "duelbits", "gamdom", "nanogames"].map((name) => [name, "no public client shows its format"]),
  ),
  ...Object.fromEntries(
    ["spribe", "aviator", "jetx", "1xbet", "melbet"].map((name) => [name, "it speaks over a socket only"]),
  ),
};

function unknownAdapter({ input }: { input?: unknown }): string {
  const given = z.looseObject({ adapter: z.unknown() }).safeParse(input);
  const name = given.success && typeof given.data.adapter === "string" ? given.data.adapter : "";
  const why = Object.hasOwn(UNSUPPORTED, name.toLowerCase()) ? UNSUPPORTED[name.toLowerCase()] : undefined;
  if (why !== undefined) {
    return `the adapter ${JSON.stringify(name)} is not supported yet: ${why}; its rounds are reachable through \`roundhouse import\`, into a table with \`enabled: false\`, which needs neither adapter nor feed`;
  }
  return `expected one of the adapters ${Object.keys(adapters).join(", ")}, found ${JSON.stringify(name.slice(0, 40))}`;
}

/** The feed of a table whose rounds are imported: it is never polled, and a file may contain hashes. */
const NO_FEED = adapters.json.options.parse({ path: "/", items: "@", round_id: "@", multiplier: "@", hash: "@" });

const namedTables = Object.values(adapters)
  .filter(({ name }) => name !== "json")
  .map((adapter) => tableOf(z.literal(adapter.name as AdapterName), adapter.options.prefault({})));

/** The schema of a table's `feed` depends on its adapter. */
const table = z.discriminatedUnion(
  "adapter",
  [
    tableOf(
      z.literal("json").optional().default("json"),
      adapters.json.options.optional().transform((feed) => feed ?? NO_FEED),
    ),
    ...namedTables,
  ],
  { error: unknownAdapter },
);

function tableOf<Name extends AdapterName>(adapter: z.ZodType<Name, Name | undefined>, feed: z.ZodType<FeedOptions>) {
  return z.strictObject({
    game: slug,
    market: slug,
    enabled: z.boolean().default(true),
    pause_ms: z.number().int().min(1).max(3_600_000).default(5000),
    adapter,
    feed,
    round_ids: z.enum(["consecutive", "opaque"]),
    colors,
    house_edge: z.number().min(0).max(0.5).optional(),
    fairness: fairnessSettings.optional(),
  });
}

/** The contract of one entry under `houses:` in houses.yaml, with its defaults. */
export const houseSettings = z
  .strictObject({
    id: slug,
    name: z.string().min(1).max(200),
    base_url: z.url({ protocol: /^https?$/, error: "expected an http or https URL" }).optional(),
    private: z.boolean().default(false),
    demo: z.boolean().default(false),
    simulated: z.boolean().default(false),
    enabled: z.boolean().default(true),
    poll_every_ms: z.number().int().min(100).max(3_600_000).default(2000),
    timeout_ms: z.number().int().min(100).max(60_000).default(DEFAULT_TIMEOUT_MS),
    headers: z.record(headerName, headerValue).default({}),
    user_agent: headerValue.min(1).max(200).optional(),
    requests_per_minute: z.number().int().min(1).max(6_000).optional(),
    tables: z.array(table).min(1).max(10_000),
  })
  .superRefine((house, context) => {
    if (!house.demo && house.enabled && house.base_url === undefined) {
      const message = "expected a URL; only a demo house, or one with `enabled: false`, needs none";
      context.addIssue({ code: "custom", path: ["base_url"], message });
    }
    house.tables.forEach((one, index) => {
      const problem = (name: string, message: string) =>
        context.addIssue({ code: "custom", path: ["tables", index, name], message });
      if (house.enabled && one.enabled && !hasFeed(one)) {
        problem(
          "feed",
          "expected where and how rounds are listed; only a table that is not polled, with `enabled: false` or of a house with it, needs no feed",
        );
      }
      const adapter = adapterOf(one);
      if (adapter.rounds === "page" && one.round_ids !== "consecutive") {
        problem("round_ids", `expected consecutive: ${adapter.name} has a page for each number`);
      }
      const headers = new Set(Object.keys(house.headers).map((name) => name.toLowerCase()));
      const missing = adapter.needsHeaders.filter((name) => !headers.has(name));
      if (house.enabled && one.enabled && missing.length > 0) {
        problem(
          "adapter",
          `${adapter.name} needs the headers ${missing.join(", ")}; set them under headers of the house`,
        );
      }
      if (one.fairness === undefined) return;
      const given = { roundIds: one.round_ids, hasHash: adapter.hasHash(one.feed) };
      const message = fairnessProblem(one.fairness, given);
      if (message !== null) problem("fairness", message);
    });
  });

/** Whether a table has a feed that can be polled. */
export function hasFeed({ feed }: TableSettings): boolean {
  return feed !== NO_FEED;
}

/** A house as it is used: variables replaced, defaults filled in. */
export type HouseSettings = z.infer<typeof houseSettings>;
/** One table of a house, as used. */
export type TableSettings = HouseSettings["tables"][number];
