import { z } from "zod";
import { keepFragments, listContent } from "./fragments.ts";
import { newestRounds } from "../published/held-rounds.ts";
import { operation } from "./operation.ts";
import { filters, invalidParameter, wholeNumber } from "./params.ts";
import { selectTables } from "./select.ts";
import type { Status } from "../houses/status.ts";
import type { Table } from "../published/tables.ts";

const MOST_ROUNDS = 100;
const USUAL_ROUNDS = 20;
/** 10,000 tables with the usual limit: a text of 35 MB. */
const MOST_IN_RESPONSE = 200_000;
const MOST_TEXT = MOST_IN_RESPONSE.toLocaleString("en-US");

/** The newest rounds of each table, newest first. There is deliberately no way to page back. */
export const rounds = operation({
  path: "/api/v1/rounds",
  params: z.strictObject({
    ...filters,
    limit: wholeNumber(MOST_ROUNDS)
      .optional()
      .meta({
        default: USUAL_ROUNDS,
        description: `At most this many rounds of each table. The number of tables times the limit may be at most ${MOST_TEXT}; the default is lower if it would be more.`,
        examples: [5],
      }),
  }),
  compose(chosen, { memory, plan }) {
    const tables = selectTables(memory.tables, plan, chosen);
    const limit = limitOf(chosen.limit, tables.length);
    const fragments = tables.map((table) => roundsOf(table, { limit, status: memory.statusOf(table) }));
    return listContent(plan.name, "tables", fragments);
  },
});

/** The rounds of each table. @throws ApiError if the requested limit is too large for so many tables */
function limitOf(requested: number | undefined, tables: number): number {
  const fitting = Math.floor(MOST_IN_RESPONSE / tables);
  if (requested === undefined) return Math.max(1, Math.min(USUAL_ROUNDS, fitting));
  if (requested <= fitting) return requested;
  const found = `found ${requested} for each of ${tables.toLocaleString("en-US")} tables`;
  const advice = fitting === 0 ? "choose fewer tables" : `choose fewer tables or a limit of at most ${fitting}`;
  throw invalidParameter("limit", `expected at most ${MOST_TEXT} rounds in a response, ${found}; ${advice}`);
}

const roundsOf = keepFragments(
  (table: Table, { limit, status }: { limit: number; status: Status }) => {
    const { house, game, market, lastRoundAt } = table;
    const about = JSON.stringify({ house: house.id, game, market, status, last_round_at: lastRoundAt });
    return `${about.slice(0, -1)},"rounds":[${newestRounds(table.rounds, limit)}]}`;
  },
  ({ limit, status }) => `${limit} ${status}`,
);
