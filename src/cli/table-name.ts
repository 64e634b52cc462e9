import type { Queryable } from "../db/client.ts";
import { UsageError } from "../errors.ts";
import { listTableNames } from "../rounds/lists/export-store.ts";
import { findTablesOf } from "../rounds/lists/table-filter-store.ts";

const MOST_SUGGESTED = 5;

/**
 * Finds the table of this name, `house/game/market`.
 * @throws UsageError listing the closest names if there is none.
 */
export async function findTableByName(sql: Queryable, name: string): Promise<{ id: number; name: string }> {
  const [id] = name.includes("/") ? ((await findTablesOf(sql, name))?.ids ?? []) : [];
  if (id !== undefined) return { id, name };
  const names = (await listTableNames(sql)).map((table) => table.name);
  const near = nearest(name, names);
  const expected = name.split("/").length === 3 ? "" : ", expected house/game/market";
  const advice = near.length === 0 ? "there are none yet" : `the nearest are ${near.join(", ")}`;
  throw new UsageError(`there is no table ${JSON.stringify(name)}${expected}; ${advice} (\`roundhouse table list\`)`);
}

/** The names with the smallest edit distance, closest first. */
function nearest(name: string, names: readonly string[]): string[] {
  return names
    .map((candidate) => ({ candidate, changes: changesBetween(name, candidate) }))
    .toSorted((a, b) => a.changes - b.changes)
    .slice(0, MOST_SUGGESTED)
    .map(({ candidate }) => candidate);
}

/** Levenshtein's distance. */
function changesBetween(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [row, letter] of [...from].entries()) {
    const current = [row + 1];
    for (const [at, other] of [...to].entries()) {
      const replaced = (previous[at] ?? 0) + (letter === other ? 0 : 1);
      current.push(Math.min(replaced, (previous[at + 1] ?? 0) + 1, (current[at] ?? 0) + 1));
    }
    previous = current;
  }
  return previous.at(-1) ?? 0;
}
