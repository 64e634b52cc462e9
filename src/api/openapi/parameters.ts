import { z } from "zod";

const FILTER = "Ids with commas between, at most 20.";

/** What each parameter is for. Its type and its limits come from the schema that reads it. */
const PARAMETERS: Record<string, { description: string; example: string }> = {
  house: { description: `Only tables of these houses. ${FILTER}`, example: "bustabit" },
  game: { description: `Only tables of these games. ${FILTER}`, example: "crash" },
  market: { description: `Only tables of these markets. ${FILTER}`, example: "global" },
  status: { description: "Only tables that have one of these statuses now.", example: "live" },
  limit: { description: "At most this many rounds of each table.", example: "5" },
  lang: { description: "The language of the text.", example: "en" },
  feature: { description: "Only this feature: `next_color` or `window:<color>:<target>`.", example: "next_color" },
  period: {
    description:
      "`24h` is the current UTC hour and the 23 before it; `7d`, `30d` and `90d` are whole UTC days and include today.",
    example: "30d",
  },
  scope: { description: "Figures of each table, or of each house over its tables in your plan.", example: "table" },
  days: { description: "How many days to list, today first.", example: "7" },
};

/** The parameters of a path, as JSON that OpenAPI knows. */
export function parametersOf(params: z.ZodObject): object[] {
  // what is read from a text, since that is where the limits are: `limit` as a number, a list as its items
  const { properties = {} } = z.toJSONSchema(params, { io: "output" });
  return Object.entries(properties).map(([name, schema]) => {
    const known = PARAMETERS[name];
    if (known === undefined) throw new Error(`expected a description of the parameter ${name}; add it to PARAMETERS`);
    const isList = typeof schema === "object" && schema.type === "array";
    return {
      name,
      in: "query",
      required: false,
      description: known.description,
      ...(isList ? { style: "form", explode: false } : {}),
      schema,
      example: exampleOf(known.example, schema),
    };
  });
}

function exampleOf(text: string, schema: z.core.JSONSchema._JSONSchema): unknown {
  if (typeof schema !== "object") return text;
  if (schema.type === "array") return [text];
  return schema.type === "integer" || schema.type === "number" ? Number(text) : text;
}
