import { z } from "zod";
import { palettes } from "../../src/houses/settings/palettes.ts";
import { houseSettings } from "../../src/houses/settings/settings.ts";

type Schema = z.core.JSONSchema.BaseSchema;

/** What each field means, for editors. */
const DESCRIPTIONS: Record<string, string> = {
  id: "Names the house in URLs, exports and commands; permanent.",
  name: "Shown to people.",
  base_url: "https://… of the house; http and private addresses only with `private: true` and ALLOW_PRIVATE_HOUSES=1.",
  private: "Allows http and private addresses if ALLOW_PRIVATE_HOUSES=1.",
  demo: "Served by `roundhouse up` itself; needs no base_url.",
  simulated: "Marks rounds as simulated wherever they are shown.",
  enabled: "false: known and importable, never polled.",
  poll_every_ms: "Pause between polls, 100 to 3,600,000. A forecast requires two polls within pause_ms.",
  timeout_ms: "Deadline of a poll.",
  headers: "Sent with each request; write secrets as ${VAR}.",
  user_agent: "How we name ourselves; add a way to reach you.",
  requests_per_minute: "Budget of requests over all processes, gaps included.",
  tables: "The games of the house, 1 to 10,000.",
  game: "First part of the table's name after the house.",
  market: "Second part of it.",
  pause_ms: "Shortest time from the end of a round to the start of the next; forecasts older than that are not issued.",
  adapter: "What reads the responses: json, or the name of a house.",
  feed: "Where and how rounds are listed; depends on the adapter.",
  round_ids: "consecutive: every missing round is known by its number. opaque: ids have no order.",
  colors:
    "2 to 8 bands of multipliers from the lowest to the highest, the last without a bound, or the name of a palette.",
  house_edge: "Declared edge, 0.01 for 1 %; the rounds are tested against it.",
  fairness: "What results are proven with: a known chain, a scheme with public values, or a list of eras.",
  path: "Path of the list of rounds.",
  items: "JMESPath to the list of rounds.",
  round_id: "JMESPath of the id inside a round.",
  multiplier: "JMESPath of the multiplier inside a round.",
  occurred_at: "JMESPath of the time inside a round.",
  hash: "JMESPath of the hash inside a round.",
  history: "Path of older rounds, with {id} and {limit}.",
  instant: "Forms of an instant crash, stored as 1.00.",
  order: "How the house lists rounds.",
  first_round_id: "The first round to poll.",
};

/** The JSON Schema of houses.yaml, made of the schema that reads it; for editors. What spans several fields is left out. */
export function housesSchema(): object {
  const settings = { unrepresentable: "any", override: describe } as const;
  const house = z.toJSONSchema(houseSettings, { ...settings, io: "input" });
  const bands = findProperty(z.toJSONSchema(houseSettings, { ...settings, io: "output" }), "colors");
  replaceProperty(house, "colors", { anyOf: [{ enum: Object.keys(palettes) }, bands] });
  replaceProperty(house, "fairness", { type: ["object", "array"] });
  const { $schema, ...entry } = house;
  return {
    $schema,
    title: "The houses file of Roundhouse",
    type: "object",
    additionalProperties: false,
    required: ["houses"],
    properties: { houses: { type: "array", minItems: 1, items: entry } },
  };
}

function describe({ jsonSchema }: { jsonSchema: Schema }): void {
  for (const [name, property] of Object.entries(jsonSchema.properties ?? {})) {
    const description = DESCRIPTIONS[name];
    if (typeof property === "object" && description !== undefined) property.description ??= description;
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
    if (typeof properties?.[name] === "object")
      properties[name] = { description: DESCRIPTIONS[name] ?? "", ...replacement };
}
