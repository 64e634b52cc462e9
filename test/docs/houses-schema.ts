import { z } from "zod";
import { fairnessEra, MOST_ERAS } from "../../src/houses/fairness/settings.ts";
import { palettes } from "../../src/houses/settings/palettes.ts";
import { houseSettings } from "../../src/houses/settings/settings.ts";

type Schema = z.core.JSONSchema.BaseSchema;

/** What each field means, for editors. A field that may be left out has a default, or its description states what is then. */
const DESCRIPTIONS: Record<string, string> = {
  houses: "Every house that is known.",
  id: "Names the house in URLs, exports and commands; permanent.",
  name: "Shown to people.",
  base_url:
    "https://… of the house; http and private addresses only with `private: true` and ALLOW_PRIVATE_HOUSES=1. Without it the house must be a demo or not enabled.",
  private: "Allows http and private addresses if ALLOW_PRIVATE_HOUSES=1.",
  demo: "Served by `roundhouse up` itself; needs no base_url.",
  simulated: "Marks rounds as simulated wherever they are shown.",
  enabled: "false: known and importable, never polled.",
  poll_every_ms: "Pause between polls, 100 to 3,600,000. A forecast requires two polls within pause_ms.",
  timeout_ms: "Deadline of a poll, 100 to 60,000.",
  headers: "Sent with each request; write secrets as ${VAR}.",
  user_agent: "How we name ourselves; add a way to reach you. Without it: roundhouse/ and the version.",
  requests_per_minute: "Budget of requests over all processes, gaps included, 1 to 6,000. Without it there is none.",
  tables: "The games of the house, 1 to 10,000.",
  game: "First part of the table's name after the house; permanent.",
  market: "Second part of the table's name; permanent.",
  pause_ms:
    "Shortest time from the end of a round to the start of the next, 1 to 3,600,000; forecasts older than that are not issued.",
  adapter: "What reads the responses: json, or the name of a house.",
  feed: "Where and how rounds are listed; depends on the adapter. Without it a table is never polled.",
  round_ids: "consecutive: every missing round is known by its number. opaque: ids have no order.",
  colors:
    "2 to 8 bands of multipliers from the lowest to the highest, the last without a bound, or the name of a palette.",
  house_edge: "Declared edge, 0.01 for 1 %, 0 to 0.5; the rounds are tested against it. Without it they are not.",
  fairness:
    "What results are proven with: a known chain, a scheme with public values, or a list of eras. Without it nothing is proven.",
  path: "Path of the list of rounds.",
  items: "JMESPath to the list of rounds.",
  round_id: "JMESPath of the id inside a round.",
  multiplier: "JMESPath of the multiplier inside a round.",
  scale: "What one unit of the multiplier is worth, above 0 and at most 1: 0.01 for hundredths.",
  occurred_at: "JMESPath of the time inside a round. Without it rounds have no time of the house.",
  hash: "JMESPath of the hash inside a round. Without it rounds are not proven.",
  history: "Path of older rounds, with {id} and {limit}. Without it missed rounds are not requested.",
  instant: "Forms of an instant crash, stored as 1.00.",
  order: "How the house lists rounds.",
  first_round_id: "The first round to poll. Without it (if the adapter allows that): the newest that the house lists.",
  game_url: "The house's name of the game in its addresses.",
  api: "Which of the house's two kinds of paths are requested; originals are the newer ones.",
};
const OF_COLORS: Record<string, string> = {
  name: "Shown to people, and named in readings and the API.",
  below: "Upper bound, above 1, with at most two decimals; belongs to the next band. Without it: the last band.",
};
const OF_FAIRNESS: Record<string, string> = {
  chain: "A known chain. Without it: a scheme.",
  scheme: "How results follow from hashes. Without it: a chain.",
  rule: "With `scheme: custom` only, and required there: how a multiplier follows from a hash. Without it: the scheme's.",
  divisor: "With rule A only: one round in this many is an instant crash. Without it: the scheme's.",
  step: "With `scheme: custom` only, and required there: how a hash follows from the next. Without it: the scheme's.",
  salt: "The public text that each hash is combined with. Without it: client_seed.",
  client_seed: "The same under another name. Without it: salt.",
  terminating_hash: "What the whole chain leads back to; required with a scheme. Without it: the chain's.",
  terminating_id: "Number of the terminating hash; rounds count on from it. Without it: 0.",
  length: "Rounds of the whole chain, 1 to 1,000,000,000. Without it the length is not known.",
  from: "First round of the era, if rounds are numbered. Without it: the first of the chain.",
  to: "Last round of the era, if rounds are numbered. Without it the era has no end.",
};

/** The JSON Schema of houses.yaml, made of the schema that reads it; for editors. What spans several fields is left out. */
export function housesSchema(): object {
  const { $schema, ...entry } = schemaOf(houseSettings, "input");
  const { $schema: _, ...era } = schemaOf(fairnessEra, "input");
  const bands = findProperty(schemaOf(houseSettings, "output"), "colors");
  const oneEra = { $ref: "#/$defs/era" };
  replaceProperty(entry, "colors", { anyOf: [{ enum: Object.keys(palettes) }, bands] });
  replaceProperty(entry, "fairness", {
    anyOf: [oneEra, { type: "array", minItems: 1, maxItems: MOST_ERAS, items: oneEra }],
  });
  const properties = { houses: { type: "array", minItems: 1, items: entry } };
  describe({ properties }, DESCRIPTIONS);
  describe(era, OF_FAIRNESS);
  return {
    $schema,
    title: "The houses file of Roundhouse",
    type: "object",
    additionalProperties: false,
    required: ["houses"],
    properties,
    $defs: { era },
  };
}

function schemaOf(type: z.ZodType, io: "input" | "output"): Schema {
  return z.toJSONSchema(type, { unrepresentable: "any", io });
}

/** Adds to each property its description, which depends on the field that it is inside of. */
function describe(schema: unknown, texts: Record<string, string>): void {
  if (typeof schema !== "object" || schema === null) return;
  for (const [key, value] of Object.entries(schema)) {
    if (key !== "properties") {
      describe(value, texts);
      continue;
    }
    for (const [name, property] of Object.entries(value as Record<string, Schema>)) {
      property.description = texts[name] ?? "";
      describe(property, name === "colors" ? OF_COLORS : texts);
    }
  }
}

/** Every schema inside another. */
function inside(schema: unknown): Schema[] {
  if (typeof schema !== "object" || schema === null) return [];
  return [schema as Schema, ...Object.values(schema).flatMap(inside)];
}

function findProperty(schema: Schema, name: string): Schema {
  const found = inside(schema)
    .map((one) => one.properties?.[name])
    .find((one) => typeof one === "object");
  if (found === undefined) throw new Error(`expected a property ${name} in the schema of houses`);
  return found;
}

function replaceProperty(schema: Schema, name: string, replacement: Schema): void {
  for (const { properties } of inside(schema))
    if (typeof properties?.[name] === "object") properties[name] = structuredClone(replacement);
}
