import type { z } from "zod";
import { TIME_PATTERN } from "../../api/openapi/fields.ts";

type Schema = z.core.JSONSchema.BaseSchema;

/** A field of a response: its path from the top, its type, its meaning. */
export interface Field {
  name: string;
  type: string;
  description: string;
}

/** Returns every field of a response with its full path: `games[].house`. */
export function fieldsOf(schema: Schema, parent = ""): Field[] {
  return Object.entries(withoutNull(schema).properties ?? {}).flatMap(([key, given]) => {
    const property = asSchema(given);
    const value = withoutNull(property);
    const name = parent === "" ? key : `${parent}.${key}`;
    const field = {
      name,
      type: typeOf(property),
      description: property.description ?? value.description ?? "",
    };
    return [
      field,
      ...(value.items === undefined ? fieldsOf(value, name) : fieldsOf(asSchema(value.items), `${name}[]`)),
    ];
  });
}

/** Describes the type of a value: `integer, 1 to 100`. */
export function typeOf(schema: Schema): string {
  const isNullable = [schema, ...(schema.anyOf ?? [])].some((one) => typesOf(asSchema(one)).includes("null"));
  return typeWithoutNull(withoutNull(schema)) + (isNullable ? " or null" : "");
}

/** The schema of a value that is not null. */
function withoutNull(schema: Schema): Schema {
  const value = schema.anyOf?.map(asSchema).find(({ type }) => type !== "null");
  return value ?? schema;
}

/** zod writes a nullable value as a list of two types, which its own type of a schema does not have. */
function typesOf({ type }: { type?: string | string[] | undefined }): string[] {
  return [type ?? "any"].flat();
}

function typeWithoutNull(schema: Schema): string {
  const { const: only, enum: names, pattern, items, additionalProperties, minItems, maxItems } = schema;
  if (pattern === TIME_PATTERN.source) return "time";
  if (only !== undefined) return typeof only === "boolean" ? String(only) : "text, always this";
  if (names !== undefined) return names.map((name) => `\`${String(name)}\``).join(", ");
  if (items !== undefined) {
    const item = asSchema(items);
    if (item.properties !== undefined) return "list";
    return minItems === 2 && maxItems === 2 ? `[${typeOf(item)}, ${typeOf(item)}]` : `list of ${typeOf(item)}`;
  }
  if (typeof additionalProperties === "object") return `object, each ${typeOf(additionalProperties)}`;
  const type = typesOf(schema).find((one) => one !== "null") ?? "null";
  return type === "string" ? "text" : type + rangeOf(schema);
}

function rangeOf({ minimum, maximum }: Schema): string {
  // zod limits every integer to the safe integers
  const most = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  const least = minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum;
  if (least !== undefined && most !== undefined) return `, ${least} to ${most}`;
  return least === undefined ? "" : `, ${least} or more`;
}

/** JSON Schema also has true, false and lists of item schemas; zod writes none of them for a response. */
function asSchema(given: boolean | Schema | (boolean | Schema)[]): Schema {
  if (typeof given === "object" && !Array.isArray(given)) return given;
  throw new Error(`expected a JSON Schema object, got ${JSON.stringify(given)}`);
}
