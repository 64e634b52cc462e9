import { describe } from "../../houses/reading/excerpt.ts";
import { parseWireJson, WireNumber } from "../../houses/reading/wire-json.ts";
import type { Line } from "./csv-lines.ts";
import type { ColumnRef, FileFormat } from "./format.ts";
import type { FileRow } from "../../import/row.ts";
import type { FileItem, FileReader } from "./item.ts";

type Field = { field: Exclude<keyof FileRow, "line">; name: string; paths: string[] };

/**
 * The reader for lines with a JSON object each. A field is addressed by its name, or by a dotted path (`data.crash`).
 * Strings and numbers keep all their digits; null and missing ones are empty. A line that is not an object, or has another
 * type in a field, is refused alone.
 */
export function jsonLinesReader({
  columns,
  row_numbers: rowNumbers,
}: Pick<FileFormat, "columns" | "row_numbers">): FileReader {
  const fields: Field[] = [
    { field: "multiplier", name: "multiplier", paths: pathsOf(columns.multiplier, "multiplier") },
    { field: "occurredAt", name: "occurred_at", paths: pathsOf(columns.occurred_at, "occurred_at") },
    { field: "hash", name: "hash", paths: pathsOf(columns.hash, "hash") },
  ];
  if (rowNumbers === null) {
    fields.unshift({ field: "roundId", name: "round_id", paths: pathsOf(columns.round_id, "round_id") });
  }
  return {
    ignored: [],
    read: (lines) => lines.flatMap((line) => (line.text.trim() === "" ? [] : [readLine(line, fields)])),
    end: () => [],
  };
}

function pathsOf(given: ColumnRef | ColumnRef[] | null, usual: string): string[] {
  return given === null ? [usual] : [given].flat().map(String);
}

function readLine({ line, text }: Line, fields: readonly Field[]): FileItem {
  const parsed = parseWireJson(text);
  if (!parsed.ok) return { ok: false, line, reason: `expected a JSON object, found ${parsed.reason}` };
  const { value } = parsed;
  if (!isObject(value)) return { ok: false, line, reason: `expected a JSON object, found ${describe(value)}` };
  const row: FileRow = { line, roundId: null, multiplier: null, occurredAt: null, hash: null };
  for (const { field, name, paths } of fields) {
    const texts: string[] = [];
    for (const path of paths) {
      const found = valueAt(value, path);
      if (found === undefined || found === null) continue;
      if (typeof found !== "string" && typeof found !== "number" && !(found instanceof WireNumber)) {
        return { ok: false, line, reason: `expected a text or a number as ${name}, found ${describe(found)}` };
      }
      // PostgreSQL stores neither
      if (typeof found === "string" && (found.includes("\0") || !found.isWellFormed())) {
        return {
          ok: false,
          line,
          reason: `expected characters of Unicode other than NUL as ${name}, found ${describe(found)}`,
        };
      }
      texts.push(String(found).trim());
    }
    row[field] = texts.filter((one) => one !== "").join(" ") || null;
  }
  return { ok: true, row };
}

function valueAt(value: Record<string, unknown>, path: string): unknown {
  if (Object.hasOwn(value, path)) return value[path];
  let at: unknown = value;
  for (const part of path.split(".")) {
    if (!isObject(at) || !Object.hasOwn(at, part)) return undefined;
    at = at[part];
  }
  return at;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof WireNumber);
}
