import type { Json } from "../../audit/entry.ts";

/** A field of an entry before and after: texts, or null if it was not there. */
export interface DiffRow {
  name: string;
  before: string | null;
  after: string | null;
}

/** The difference of an entry; `more` rows are left out. */
export interface Diff {
  rows: DiffRow[];
  more: number;
}

const MOST_ROWS = 100;
const MOST_CHARACTERS = 500;
const MASK = "••••••";
/** Names of fields that may hold what lets its reader sign in, call or pay; entries have none, and none is shown. */
const SECRET = /pass(?:word|phrase)|secret|token|backup_?codes|api_?key|private_?key|cookie|authorization|seed/i;

/** Two sides of an entry as rows, one a field; fields of objects and lists have their path as name. */
export function diffOf(before: Json, after: Json): Diff {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const rows = [...new Set([...old.keys(), ...now.keys()])].map((name) => ({
    name,
    before: old.get(name) ?? null,
    after: now.get(name) ?? null,
  }));
  return { rows: rows.slice(0, MOST_ROWS), more: Math.max(0, rows.length - MOST_ROWS) };
}

/** The same value with its secrets masked, as text for a file. */
export function maskedText(value: Json): string {
  return value === null ? "" : JSON.stringify(value, (name, item: Json) => (isSecret(name, item) ? MASK : item));
}

function isSecret(name: string, value: Json): boolean {
  return SECRET.test(name) && (typeof value === "string" || Array.isArray(value));
}

/** Fields by their path; a value alone has the name "value". */
function fieldsOf(value: Json): Map<string, string> {
  const fields = new Map<string, string>();
  collect(fields, "", "", value);
  return fields;
}

function collect(fields: Map<string, string>, path: string, name: string, value: Json): void {
  if (value === null) return;
  if (isSecret(name, value)) return void fields.set(path, MASK);
  if (typeof value !== "object") return void fields.set(path || "value", clipped(String(value)));
  if (Array.isArray(value) && value.every((item) => item === null || typeof item !== "object")) {
    return void fields.set(path || "value", clipped(value.map(String).join(", ")));
  }
  for (const [key, item] of Object.entries(value)) {
    collect(fields, path === "" ? key : `${path}.${key}`, key, item);
  }
}

function clipped(text: string): string {
  return text.length <= MOST_CHARACTERS ? text : `${text.slice(0, MOST_CHARACTERS).toWellFormed()}…`;
}
