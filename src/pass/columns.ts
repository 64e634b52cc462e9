/*
 * The columns of a stored row, listed once (compute/rows.ts): the type of the row, what is selected and parsed, and what is
 * written follow from the list. A column has the name of its field in snake case.
 */
import { Part } from "../db/statement.ts";
import { fromDatabase } from "./compute/times.ts";
import { arraysArray, hexArray, plainArray, textArray, type Plain } from "./stores/arrays.ts";

/** How the values of a column are read and written. */
export interface Kind<Value> {
  /** What is selected of the column. */
  select(column: string): string;
  /** The value of what the driver returns. */
  parse(selected: unknown): Value;
  /** The values of several rows as the text of an array. */
  bind(values: readonly Value[]): string;
  /** The type of that array. */
  type: string;
  /** The type that an element of it is cast to. */
  cast?: string;
  /** The values are bound as one byte string instead. */
  isHash?: boolean;
}

function kindOf<Value>(type: string, bind: Kind<Value>["bind"]): Kind<Value> {
  return { select: (column) => column, parse: (selected) => selected as Value, bind, type };
}

/** Values whose text needs no quotes in an array. */
export function plain<Value extends Plain>(type: string): Kind<Value> {
  return kindOf<Value>(`${type}[]`, plainArray);
}

/** Arrays, each of any length. */
export function arrayOf<Value extends number | bigint | null>(type: string): Kind<readonly Value[]> {
  return { ...kindOf<readonly Value[]>("text[]", arraysArray), cast: `${type}[]` };
}

/** Values or null. */
export function optional<Value>(kind: Kind<Value>): Kind<Value | null> {
  return { ...kind, parse: (selected) => (selected === null ? null : kind.parse(selected)) };
}

export const smallint = plain<number>("smallint");
export const integer = plain<number>("integer");
export const bigint = plain<bigint>("bigint");
/** A bigint that a number can hold. */
export const bigintAsNumber: Kind<number> = { ...plain("bigint"), parse: Number };
export const boolean = plain<boolean>("boolean");
export const text = kindOf<string>("text[]", textArray);
/** A time, in UTC with seven digits. */
export const time: Kind<string> = {
  ...plain("timestamptz"),
  select: (column) => `${column}::text`,
  parse: (selected) => fromDatabase(String(selected)),
};
/** A bytea, in hexadecimal digits. */
export const hex: Kind<string> = {
  ...kindOf<string>("bytea[]", hexArray),
  select: (column) => `encode(${column}, 'hex')`,
};
/** A bytea of 32 bytes that is never null. */
export const hash: Kind<string> = { ...hex, isHash: true };
/** A jsonb that is never null. */
export const json = kindOf<object>("jsonb[]", (values) => textArray(values.map((value) => JSON.stringify(value))));

type Description = Readonly<Record<string, Kind<unknown>>>;

/** The type of the rows with these columns. */
export type RowOf<Of extends Description> = {
  [Key in keyof Of]: Of[Key] extends Kind<infer Value> ? Value : never;
};

/** What a row is parsed from. */
export type Selected<Row> = Readonly<Record<keyof Row, unknown>>;

/** What statements need of the columns of a row. Texts are made here, once. */
export function columnsOf<Of extends Description>(description: Of) {
  const columns = Object.entries(description).map(([key, kind]) => ({ key, name: snakeCase(key), kind }));
  const hashes = columns.filter(({ kind }) => kind.isHash);
  const arrays = columns.filter(({ kind }) => !kind.isHash);
  const names = columns.map(({ name }) => name);
  const values = columns.map(({ name, kind: { cast, isHash } }) => {
    if (isHash) return `substr(?, (32 * place - 31)::integer, 32) as ${name}`;
    return cast === undefined ? name : `${name}::${cast} as ${name}`;
  });
  // the bound values replace the question marks
  const written = `
    select table_id, ${values.join(", ")}
    from unnest(?::integer[], ${arrays.map(({ kind }) => `?::${kind.type}`).join(", ")})
      with ordinality as r (table_id, ${arrays.map(({ name }) => name).join(", ")}, place)`.split("?");
  // a row is a copy of it: V8 would store the fields of one that is built field by field in a slow form
  const blank: Record<string, unknown> = Object.fromEntries(columns.map(({ key }) => [key, null]));
  return {
    /** Their names. */
    names: new Part([names.join(", ")]),

    /** What an update assigns from a table, or from its alias. */
    assignFrom: (table: string): Part => new Part([names.map((name) => `${name} = ${table}.${name}`).join(", ")]),

    /** What is selected of a table, or of its alias. */
    selectFrom: (table: string): Part =>
      new Part([columns.map(({ key, name, kind }) => `${kind.select(`${table}.${name}`)} as "${key}"`).join(", ")]),

    /** The row of what was selected. */
    parse: (selected: Selected<RowOf<Of>>): RowOf<Of> => {
      const row = { ...blank };
      for (const { key, kind } of columns) row[key] = kind.parse(selected[key]);
      return row as RowOf<Of>;
    },

    /** A query that returns rows to write, with their tables, in their order. */
    rows: ({ tableIds, rows }: { tableIds: string; rows: readonly RowOf<Of>[] }): Part =>
      new Part(written, [
        ...hashes.map(({ key }) => Buffer.from(rows.map((row) => row[key]).join(""), "hex")),
        tableIds,
        ...arrays.map(({ key, kind }) => kind.bind(rows.map((row) => row[key]))),
      ]),
  };
}

/** The name of the column of a field. */
function snakeCase(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
