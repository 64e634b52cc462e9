/** What a statement may have as a bound value; arrays of them too. `undefined` is refused. */
export type Value =
  string | number | boolean | bigint | Date | Uint8Array | null | Json | Identifier | Fragment | readonly Element[];
type Element = string | number | boolean | bigint | Date | Uint8Array | null | readonly Element[];

/** Anything that `JSON.stringify` writes, typed loosely since rows are declared as interfaces. */
export type JsonValue = string | number | boolean | null | object;

/** A value that is bound as jsonb. */
export class Json {
  readonly value: JsonValue;
  constructor(value: JsonValue) {
    this.value = value;
  }
}

/** A name, or several with commas between, quoted as PostgreSQL quotes identifiers. */
export class Identifier {
  readonly text: string;
  constructor(names: string | readonly string[]) {
    this.text = [names].flat().map(quoteIdentifier).join(", ");
  }
}

/**
 * Part of a statement: the text of a template and its values, or text alone. A class, so that no object that was parsed
 * from a request can be one.
 */
export abstract class Fragment {
  abstract readonly template: Template;
}

/** A part that a program put together; its texts must not come from outside. */
export class Part extends Fragment {
  readonly template: Template;
  constructor(strings: readonly string[], values: readonly unknown[] = []) {
    super();
    this.template = { strings, values };
  }
}

/** The pieces of a template with the values between them. */
export interface Template {
  readonly strings: readonly string[];
  readonly values: readonly unknown[];
}

/** A statement as the driver takes it: text with $1, $2, … and values in the form of the protocol. */
export interface CompiledStatement {
  text: string;
  values: (string | Buffer | null | unknown[])[];
}

/** A name in double quotes; a dot parts a schema from a name. */
function quoteIdentifier(name: string): string {
  return name
    .split(".")
    .map((part) => `"${part.replaceAll('"', '""')}"`)
    .join(".");
}

/**
 * Puts a template together: fragments and identifiers become text, everything else a bound value.
 *
 * A date, boolean, bigint, byte string or JSON value carries its type (`$1::timestamptz`), because PostgreSQL would take an
 * untyped `$1 - interval '1 day'` for an interval. Numbers, strings and arrays take their type from the place they are in.
 * @throws TypeError for a value that is undefined or an object of another kind.
 */
export function compileStatement(template: Template): CompiledStatement {
  const values: CompiledStatement["values"] = [];
  const text = append("", template, values);
  return { text, values };
}

function append(before: string, { strings, values }: Template, bound: CompiledStatement["values"]): string {
  let text = before + (strings[0] ?? "");
  for (const [at, value] of values.entries()) {
    text = appendValue(text, value, bound) + (strings[at + 1] ?? "");
  }
  return text;
}

function appendValue(text: string, value: unknown, bound: CompiledStatement["values"]): string {
  if (value instanceof Identifier) return text + value.text;
  if (value instanceof Fragment) return append(text, value.template, bound);
  const [sent, type] = encode(value, text);
  bound.push(sent);
  return `${text}$${bound.length}${type}`;
}

/** A value as the protocol takes it, and the cast that names its type. */
function encode(value: unknown, text: string): [CompiledStatement["values"][number], string] {
  if (value === null) return [null, ""];
  switch (typeof value) {
    case "string":
      return [value, ""];
    case "number":
      return [String(value), ""];
    case "boolean":
      return [String(value), "::boolean"];
    case "bigint":
      return [String(value), "::bigint"];
    case "object":
      if (Array.isArray(value)) return [value.map((element) => encodeElement(element, text)), ""];
      if (value instanceof Date) return [value.toISOString(), "::timestamptz"];
      if (value instanceof Json) return [JSON.stringify(value.value), "::jsonb"];
      if (value instanceof Uint8Array)
        return [Buffer.from(value.buffer, value.byteOffset, value.byteLength), "::bytea"];
      break;
    default:
  }
  throw notBindable(value, text);
}

function encodeElement(element: unknown, text: string): unknown {
  if (element instanceof Date) return element.toISOString();
  if (Array.isArray(element)) return element.map((inner) => encodeElement(inner, text));
  const isBindable =
    element === null || element instanceof Uint8Array || (typeof element !== "object" && element !== undefined);
  if (!isBindable) throw notBindable(element, text); // the driver would bind null, or JSON
  return element;
}

function notBindable(value: unknown, text: string): TypeError {
  const found = value === undefined ? "undefined" : `a value of type ${typeof value}`;
  return new TypeError(`expected a value that can be bound, found ${found} after: …${text.slice(-80).trim()}`);
}
