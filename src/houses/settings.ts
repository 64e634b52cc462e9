import jmespath from "jmespath";
import { z } from "zod";

const slug = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, {
  error: "expected lower case letters, digits, - or _, at most 64, beginning with a letter or digit",
});
const expression = z.string().min(1).max(500).refine(isJmesPath, { error: "expected a JMESPath expression" });
const path = z
  .string()
  .max(1000)
  .regex(/^\/[^\s]*$/, { error: "expected a path that begins with /" });
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, { error: "expected 64 lower case hexadecimal digits" });

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

const colors = z
  .array(color)
  .min(2, { error: "expected 2 to 8 colors" })
  .max(8, { error: "expected 2 to 8 colors" })
  .superRefine((bands, context) => {
    bands.forEach((band, index) => {
      const previous = bands[index - 1];
      if (bands.findIndex((other) => other.name === band.name) !== index) {
        context.addIssue({ code: "custom", path: [index, "name"], message: `the color ${band.name} is already there` });
      }
      if (index === bands.length - 1) {
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

const feed = z.strictObject({
  path,
  items: expression,
  round_id: expression,
  multiplier: expression,
  scale: z.number().positive().max(1).default(1),
  instant: z
    .array(z.union([z.string().max(32), z.number()]))
    .max(10)
    .default([]),
  occurred_at: expression.optional(),
  hash: expression.optional(),
  history: path
    .refine((text) => text.includes("{id}"), {
      error: "expected {id}, the round before which older ones are asked for",
    })
    .optional(),
  order: z.enum(["auto", "newest_first", "newest_last"]).default("auto"),
});

const fairness = z.strictObject({
  scheme: z.enum(["bustabit"]),
  salt: z.string().min(1).max(200),
  terminating_hash: sha256,
  terminating_id: z.number().int().min(0).default(0),
});

const table = z.strictObject({
  game: slug,
  market: slug,
  enabled: z.boolean().default(true),
  pause_ms: z.number().int().min(1).max(3_600_000).default(5000),
  adapter: z.enum(["json"]).default("json"),
  feed,
  round_ids: z.enum(["consecutive", "opaque"]),
  colors,
  house_edge: z.number().min(0).max(0.5).optional(),
  fairness: fairness.optional(),
});

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
    timeout_ms: z.number().int().min(100).max(60_000).default(5000),
    headers: z.record(headerName, headerValue).default({}),
    tables: z.array(table).min(1).max(10_000),
  })
  .superRefine((house, context) => {
    if (!house.demo && house.base_url === undefined) {
      context.addIssue({ code: "custom", path: ["base_url"], message: "expected a URL; only demo houses need none" });
    }
    house.tables.forEach((one, index) => {
      if (one.fairness !== undefined && (one.round_ids !== "consecutive" || one.feed.hash === undefined)) {
        context.addIssue({
          code: "custom",
          path: ["tables", index, "fairness"],
          message: "a bustabit proof needs `round_ids: consecutive` and `feed.hash`",
        });
      }
    });
  });

/** A house as it is used: variables replaced, defaults filled in. */
export type HouseSettings = z.infer<typeof houseSettings>;
/** One table of a house as it is used. */
export type TableSettings = HouseSettings["tables"][number];
/** How a table's answers are fetched and read by the generic adapter. */
export type FeedSettings = TableSettings["feed"];

function isJmesPath(text: string): boolean {
  try {
    jmespath.search(null, text);
    return true;
  } catch {
    return false; // the parser throws on anything it cannot read; evaluating on null never does
  }
}
