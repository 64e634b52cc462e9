import pg from "pg";

const { builtins } = pg.types;
const SMALLINT_ARRAY = 1005;
const INTEGER_ARRAY = 1007;
const BIGINT_ARRAY = 1016;
const DATE_ARRAY = 1182;
const NUMERIC_ARRAY = 1231;
const NAME_ARRAY = 1003;

type Parse = (text: string) => unknown;

/** The driver's own reading of text[], which splits an array; its types list no arrays. */
const TEXT_ARRAY: number = 1009;

function splitArray(text: string): unknown[] {
  const parse: (text: string) => unknown = pg.types.getTypeParser(TEXT_ARRAY, "text");
  const elements = parse(text);
  if (!Array.isArray(elements)) throw new TypeError(`expected an array of PostgreSQL, found ${text.slice(0, 40)}`);
  return elements;
}

/** Reads the elements of an array, nested ones too; NULL stays null. */
function arrayOf(parse: Parse): Parse {
  const each = (elements: unknown[]): unknown[] =>
    elements.map((element) =>
      Array.isArray(element) ? each(element) : typeof element === "string" ? parse(element) : element,
    );
  return (text) => each(splitArray(text));
}

/**
 * Reads an array of whole numbers. Nested ones, and those with explicit bounds, are split by the driver, which costs five
 * times as much.
 */
function numbersOf(parse: Parse): Parse {
  const others = arrayOf(parse);
  return (text) => {
    if (text === "{}") return [];
    if (text.lastIndexOf("{") !== 0) return others(text);
    return text
      .slice(1, -1)
      .split(",")
      .map((element) => (element === "NULL" ? null : parse(element)));
  };
}

/** A date is midnight UTC, whatever the zone of this machine. */
const parseDate: Parse = (text) => new Date(text);
const asText: Parse = (text) => text;

const OURS = new Map<number, Parse>([
  [builtins.INT8, BigInt],
  [builtins.DATE, parseDate],
  [builtins.INTERVAL, asText],
  [SMALLINT_ARRAY, numbersOf(Number)],
  [INTEGER_ARRAY, numbersOf(Number)],
  [BIGINT_ARRAY, numbersOf(BigInt)],
  [DATE_ARRAY, arrayOf(parseDate)],
  [NUMERIC_ARRAY, arrayOf(asText)],
  [NAME_ARRAY, arrayOf(asText)],
]);

/** How columns are read: bigint as BigInt, numeric and interval as text, json parsed, times as Date, the rest as the driver does. */
export const rowTypes: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: string) {
    const parse = format === "binary" ? undefined : OURS.get(oid);
    return parse ?? pg.types.getTypeParser(oid, format as "text");
  },
};
