import { z } from "zod";
import type { Description } from "./description.ts";

type Schema = z.core.JSONSchema.BaseSchema;

/** A parameter as OpenAPI writes it. */
export interface Parameter {
  name: string;
  in: "query" | "header";
  required: false;
  description: string;
  /** For a list: its values are separated by commas. */
  style?: "form";
  explode?: false;
  schema: Schema;
  example: unknown;
}

const IF_NONE_MATCH: Parameter = {
  name: "If-None-Match",
  in: "header",
  required: false,
  description:
    "The ETag of an earlier response to the same request: a free 304 if the response would be the same, or a 429 once the quota is used up; `*` never matches.",
  schema: { type: "string" },
  example: '"n3hU9m0a8Yk2bJt6sQ4xWv1zR5eLc7dPqTfGiKoMyBE"',
};

/**
 * Returns the parameters of an operation, from the schema that parses them.
 * @throws Error if one of them has no description or no example
 */
export function parametersOf({ operation, isCounted }: Pick<Description, "operation" | "isCounted">): Parameter[] {
  // the output schema has the limits: `limit` is a number, a list has its items
  const { properties = {} } = z.toJSONSchema(operation.params, { io: "output" });
  const query = Object.entries(properties).map(([name, property]) => queryParameter(name, property));
  return isCounted ? [...query, IF_NONE_MATCH] : query;
}

function queryParameter(name: string, property: boolean | Schema): Parameter {
  const { description, examples: [example] = [], ...schema } = Object(property) as Schema;
  if (description === undefined || example === undefined)
    throw new Error(`expected a description and an example of the parameter ${name}; add them to its schema with meta`);
  const separated = schema.type === "array" ? ({ style: "form", explode: false } as const) : {};
  return { name, in: "query", required: false, description, ...separated, schema, example };
}
