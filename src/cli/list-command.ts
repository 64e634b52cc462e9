import { type Command, Option } from "commander";
import { examples, houseId, tableName, wholeNumber } from "./arguments.ts";
import { type Chosen, chosenTables } from "./houses/chosen-tables.ts";
import { type Cell, printJson, printTable, say, snakeKeys } from "./output.ts";
import { type Session, withDatabase } from "./session.ts";

/** An option that restricts a list. `value` states the type of what is given, and has no value of its own. */
interface Filter<Value> extends Option {
  readonly value?: Value;
}

/** A filter whose text `parse` reads. */
export function filter<Value>(flags: string, description: string, parse: (text: string) => Value): Filter<Value> {
  return new Option(flags, description).argParser(parse);
}

/** A filter that takes one of some texts. */
export function oneOf<Value extends string>(
  flags: string,
  description: string,
  choices: readonly Value[],
): Filter<Value> {
  return new Option(flags, description).choices(choices);
}

/** The filter `--state`. */
export function inState<const State extends string>(...states: State[]): Filter<State> {
  return oneOf("--state <state>", "those in one state", states);
}

/** The filters `--house` and `--table`, of which at most one is accepted. */
export function ofTables(): { house: Filter<string>; table: Filter<string> } {
  return {
    house: filter("--house <id>", "those of one house", houseId).conflicts("table"),
    table: ofTable("those of one table"),
  };
}

/** The filter `--table`. */
export function ofTable(description: string): Filter<string> {
  return filter("--table <house/game/market>", description, tableName);
}

/** The columns of a printed list: headings, and the cell of a row under each. */
export type Columns<Row> = readonly (readonly [heading: string, cell: (row: Row) => Cell])[];

type Filters = Readonly<Record<string, Filter<unknown>>>;

/** The values of filters, null for those that are not given. */
type Values<Given extends Filters> = {
  [Name in keyof Given]: Given[Name] extends Filter<infer Value> ? Value | null : never;
} & {
  /** The tables of `--house` or `--table`. */
  tableIds: number[] | null;
};

/** A command that lists rows. */
interface List<Row extends object, Given extends Filters> {
  name?: string;
  description: string;
  /** By the names of their values. */
  filters?: Given;
  /** Whether it takes `--limit`, and lists the newest alone. */
  hasLimit?: true;
  jsonDescription?: string;
  examples: readonly string[];
  read: (
    session: Session,
    values: Values<Given>,
    newest: { after: null; oldestFirst: false; limit: number },
  ) => Promise<readonly Row[] | { rows: readonly Row[]; total: number }>;
  /** Advice in place of a table without rows. */
  whenEmpty?: string;
  columns: Columns<Row>;
  /** A row as JSON shows it; without it the names of its fields are changed to snake_case. */
  toJson?: (row: Row) => object;
}

/** Adds the command of a list to a group. */
export function listCommand<Row extends object, Given extends Filters>(group: Command, list: List<Row, Given>): void {
  const { name = "list", filters = {}, jsonDescription = "print a JSON array", toJson = snakeKeys, whenEmpty } = list;
  const command = group.command(name).description(list.description);
  for (const option of Object.values<Option>(filters)) command.addOption(option);
  if (list.hasLimit) command.option("--limit <n>", "at most this many", wholeNumber(1, 10_000), 50);
  command
    .option("--json", jsonDescription, false)
    .addHelpText("after", examples(...list.examples))
    .action((given: Record<string, unknown> & Chosen & { limit: number; json: boolean }) =>
      withDatabase(async (session) => {
        const values = Object.fromEntries(Object.keys(filters).map((key) => [key, given[key] ?? null]));
        const tableIds = await chosenTables(session.sql, given);
        const newest = { after: null, oldestFirst: false, limit: given.limit } as const;
        const found = await list.read(session, { ...values, tableIds } as Values<Given>, newest);
        const { rows, total } = "rows" in found ? found : { rows: found, total: found.length };
        if (given.json) return printJson(rows.map((row) => toJson(row)));
        if (rows.length === 0 && whenEmpty !== undefined) return say(whenEmpty);
        await printColumns(list.columns, rows);
        if (total > rows.length) say(`${rows.length} of ${total}; --limit shows more`);
      }),
    );
}

/** Prints rows as a table. */
export function printColumns<Row>(columns: Columns<Row>, rows: readonly Row[]): Promise<void> {
  return printTable(
    columns.map(([heading]) => heading),
    rows.map((row) => columns.map(([, cell]) => cell(row))),
  );
}
