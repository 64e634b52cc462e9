import { readFileSync } from "node:fs";
import { type Document, parseDocument } from "yaml";
import { z } from "zod";
import { pathText, toProblem } from "../config/problems.ts";
import type { Variables } from "../config/environment.ts";
import { reasonOf, UsageError, type Problem } from "../errors.ts";
import { expandVariables } from "../houses/settings/expand-variables.ts";
import { houseSettings, type HouseSettings } from "../houses/settings/settings.ts";

/** One house of the file: `settings` with variables replaced and defaults filled in, `entry` as written. */
export interface HouseEntry {
  settings: HouseSettings;
  entry: Record<string, unknown>;
}

/**
 * Reads and validates houses.yaml.
 *
 * @throws UsageError with all problems together, each with its path in the file such as `houses[1].tables[0].colors`
 */
export function loadHouses(file: string, variables: Variables, options: { allowPrivate: boolean }): HouseEntry[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`the houses file ${file} cannot be read (set HOUSES_FILE to another): ${reasonOf(error)}`);
  }
  const document = parseDocument(text, { prettyErrors: true });
  if (document.errors.length > 0) {
    const problems = document.errors.map((error) => ({
      path: `line ${error.linePos?.[0].line ?? "?"}`,
      message: error.message.split("\n")[0] ?? "not YAML",
    }));
    throw new UsageError(`the houses file ${file} is not YAML:`, problems);
  }
  const problems: Problem[] = [];
  const raw = valueOf(document, file);
  const outer = z.strictObject({ houses: z.array(z.record(z.string(), z.unknown())).min(1) }).safeParse(raw);
  if (!outer.success) {
    throw new UsageError(`the houses file ${file} is not usable:`, outer.error.issues.map(toProblem));
  }
  const houses = outer.data.houses.flatMap((entry, index): HouseEntry[] => {
    const at = ["houses", index];
    const expanded = expandVariables(entry, variables, (path, message) => {
      // a house that is never requested needs no secrets yet
      if (entry["enabled"] !== false) problems.push({ path: pathText([...at, ...path]), message });
    });
    const result = houseSettings.safeParse(expanded);
    if (!result.success) {
      problems.push(...result.error.issues.map((issue) => toProblem({ ...issue, path: [...at, ...issue.path] })));
    }
    const { tables, ...address } = outline.parse(expanded);
    problems.push(...addressProblems(address, options.allowPrivate, pathText([...at, "base_url"])));
    problems.push(...repeatedTables(entry["id"], tables, pathText([...at, "tables"])));
    return result.success ? [{ settings: result.data, entry }] : [];
  });
  problems.push(...repeatedHouses(outer.data.houses));
  if (problems.length > 0) throw new UsageError(`the houses file ${file} is not usable:`, problems);
  return houses;
}

/** The value of a document. Aliases are not limited: the operator wrote the file. @throws UsageError if one has no anchor. */
function valueOf(document: Document, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: -1 });
  } catch (error) {
    throw new UsageError(`the houses file ${file} is not usable: ${reasonOf(error)}`);
  }
}

/** The parts that are checked even if the rest of a house is invalid, so that all problems are reported together. */
const outline = z.object({
  demo: z.boolean().catch(false),
  private: z.boolean().catch(false),
  base_url: z.string().optional().catch(undefined),
  tables: z.array(z.object({ game: z.string(), market: z.string() }).nullable().catch(null)).catch([]),
});
type Outline = z.infer<typeof outline>;

function addressProblems(house: Omit<Outline, "tables">, allowPrivate: boolean, path: string): Problem[] {
  if (house.demo || house.base_url === undefined || !URL.canParse(house.base_url)) return [];
  const url = new URL(house.base_url);
  if (url.username !== "" || url.password !== "") {
    return [{ path, message: "expected no user and password in the URL; send them in a header with `${VAR}`" }];
  }
  if (house.private && !allowPrivate) {
    return [{ path, message: "a private house needs ALLOW_PRIVATE_HOUSES=1 in the environment" }];
  }
  if (url.protocol !== "https:" && !house.private) {
    return [{ path, message: "expected https; only houses with `private: true` may use http" }];
  }
  return [];
}

function repeatedTables(house: unknown, tables: Outline["tables"], path: string): Problem[] {
  return tables.flatMap((one, index) => {
    const first = tables.findIndex((other) => other?.game === one?.game && other?.market === one?.market);
    return one === null || first === index
      ? []
      : [
          {
            path: `${path}[${index}]`,
            message: `the table ${String(house)}/${one.game}/${one.market} is already tables[${first}]`,
          },
        ];
  });
}

function repeatedHouses(entries: Record<string, unknown>[]): Problem[] {
  return entries.flatMap((entry, index) => {
    const first = entries.findIndex((other) => other["id"] === entry["id"]);
    return entry["id"] === undefined || first === index
      ? []
      : [
          {
            path: `houses[${index}].id`,
            message: `${JSON.stringify(entry["id"])} is already the id of houses[${first}]`,
          },
        ];
  });
}
