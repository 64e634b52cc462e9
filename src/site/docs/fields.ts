import type { Schema, Shown } from "./document.ts";

/** A field of an answer: where it is, what it can be, what it means. */
export interface Field {
  name: string;
  type: string;
  description: string;
}

/** Every field of an answer, each with its whole way from the top: `games[].house`. */
export function fieldsOf(schema: Schema, resolve: Shown["resolve"], way = ""): Field[] {
  const { properties = {} } = valueOf(schema, resolve);
  return Object.entries(properties).flatMap(([name, property]) => {
    const value = valueOf(property, resolve);
    const here = way === "" ? name : `${way}.${name}`;
    const field = {
      name: here,
      type: typeOf(property, resolve),
      description: resolve(property).description ?? value.description ?? "",
    };
    return [field, ...fieldsOf(value.items ?? value, resolve, value.items === undefined ? here : `${here}[]`)];
  });
}

/** What a value can be, in words: `integer, 1 to 100`. */
export function typeOf(schema: Schema, resolve: Shown["resolve"]): string {
  const { anyOf = [], type } = resolve(schema);
  const isNullable = anyOf.some((one) => one.type === "null") || (Array.isArray(type) && type.includes("null"));
  return kindOf(valueOf(schema, resolve), resolve, isTime(schema)) + (isNullable ? " or null" : "");
}

/** The schema of a value that is there. */
function valueOf(schema: Schema, resolve: Shown["resolve"]): Schema {
  const resolved = resolve(schema);
  const [present] = resolved.anyOf?.filter(({ type }) => type !== "null") ?? [];
  return present === undefined ? resolved : resolve(present);
}

function isTime({ $ref, anyOf = [] }: Schema): boolean {
  return $ref?.endsWith("/Timestamp") === true || anyOf.some(isTime);
}

function kindOf(schema: Schema, resolve: Shown["resolve"], time: boolean): string {
  const { items, prefixItems, enum: names, minimum, maximum, additionalProperties } = schema;
  const type = [schema.type ?? "any"].flat().find((one) => one !== "null") ?? "null";
  if (time) return "time";
  if (schema.const !== undefined) return typeof schema.const === "boolean" ? String(schema.const) : "text, always this";
  if (names !== undefined) return names.map((name) => `\`${String(name)}\``).join(", ");
  if (prefixItems !== undefined) return `[${prefixItems.map((item) => typeOf(item, resolve)).join(", ")}]`;
  if (type === "array" && items !== undefined) {
    return items.properties === undefined ? `list of ${typeOf(items, resolve)}` : "list";
  }
  if (additionalProperties !== undefined) return `object, each ${typeOf(additionalProperties, resolve)}`;
  if (type === "string") return "text";
  return type + rangeOf(minimum, maximum);
}

function rangeOf(minimum: number | undefined, maximum: number | undefined): string {
  // zod bounds every integer by those that a double holds exactly
  const most = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  const least = minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum;
  if (least !== undefined && most !== undefined) return `, ${least} to ${most}`;
  return least === undefined ? "" : `, ${least} or more`;
}
