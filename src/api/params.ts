import { z } from "zod";
import { ApiError } from "../http/errors.ts";
import { STATUSES } from "../houses/status.ts";

const IDS_AT_ONCE = 20;
const SHOWN_LENGTH = 64;
const SHOWN_NAMES = 10;

const id = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, {
  error: "expected ids of lower case letters, digits, - and _, separated by commas",
});

/** A comma-separated list of at most 20 values. */
function commaList<Item extends z.ZodType<string, string>>(item: Item) {
  return z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(item).max(IDS_AT_ONCE, { error: `expected at most ${IDS_AT_ONCE} values` }));
}

const tablesOf = (plural: string, example: string) =>
  commaList(id)
    .optional()
    .meta({
      description: `Only tables of these ${plural}. Ids separated by commas, at most ${IDS_AT_ONCE}.`,
      examples: [[example]],
    });

/** The parameters that choose tables, the same in every operation on tables. */
export const filters = {
  house: tablesOf("houses", "bustabit"),
  game: tablesOf("games", "crash"),
  market: tablesOf("markets", "global"),
};

/** The parsed filters of a request. */
export type Filters = z.infer<z.ZodObject<typeof filters>>;

/** The `status` parameter. */
export const statusFilter = commaList(
  z.enum(STATUSES, { error: `expected ${STATUSES.join(", ")}, separated by commas` }),
)
  .optional()
  .meta({ description: "Only tables that have one of these statuses now.", examples: [["live"]] });

/** A whole number from 1 in plain form: `1e3`, `+5` and `05` are refused. */
export function wholeNumber(max: number) {
  const error = `expected a whole number from 1 to ${max}`;
  return z
    .string()
    .regex(/^(?:0|[1-9]\d{0,8})$/, { error })
    .transform(Number)
    .pipe(z.int().min(1, { error }).max(max, { error }));
}

/**
 * Parses the parameters of a request strictly: unknown and repeated ones are refused, since ignoring them would return
 * something other than what was requested.
 * @throws ApiError `unknown_parameter` or `invalid_parameter`
 */
export function readParams<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
  query: URLSearchParams,
): z.infer<z.ZodObject<Shape>> {
  const names = [...new Set(query.keys())];
  const allowed = Object.keys(schema.shape);
  const unknown = names.filter((name) => !allowed.includes(name));
  if (unknown.length > 0) throw unknownParameters(unknown, allowed);
  for (const name of names) {
    if (query.getAll(name).length > 1) {
      throw invalidParameter(name, "expected it once; separate several values with commas");
    }
  }
  const result = schema.safeParse(Object.fromEntries(query));
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const name = String(issue?.path[0]);
  const found = `found ${JSON.stringify(shortened(query.get(name) ?? ""))}`;
  throw invalidParameter(name, `${issue?.message ?? "expected another value"}, ${found}`);
}

function unknownParameters(unknown: string[], allowed: string[]): ApiError {
  const shown = unknown.slice(0, SHOWN_NAMES).map(shortened);
  const list = allowed.length === 0 ? "this path has none" : `allowed: ${allowed.join(", ")}`;
  return new ApiError("unknown_parameter", {
    message: `unknown parameter ${shown.map((name) => JSON.stringify(name)).join(", ")}; ${list}`,
    details: { unknown: shown, allowed },
  });
}

/** The refusal of a parameter's value; the problem states what was expected and found. */
export function invalidParameter(parameter: string, problem: string): ApiError {
  return new ApiError("invalid_parameter", { message: `${parameter}: ${problem}`, details: { parameter } });
}

function shortened(text: string): string {
  return text.length <= SHOWN_LENGTH ? text : `${text.slice(0, SHOWN_LENGTH)}…`;
}
