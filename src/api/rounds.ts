import { z } from "zod";
import { keepFragments, listContent } from "./fragments.ts";
import { newestRounds } from "../published/held-rounds.ts";
import { operation } from "./operation.ts";
import { filters, wholeNumber } from "./params.ts";
import { selectTables } from "./select.ts";
import type { Status } from "../houses/status.ts";
import type { Table } from "../published/tables.ts";

const MOST_ROUNDS = 100;
const USUAL_ROUNDS = 20;

/** The newest rounds of each table, newest first. There is deliberately no way to page back. */
export const rounds = operation({
  path: "/api/v1/rounds",
  params: z.strictObject({
    ...filters,
    limit: wholeNumber(MOST_ROUNDS, USUAL_ROUNDS).meta({
      description: "At most this many rounds of each table.",
      examples: [5],
    }),
  }),
  compose(chosen, { memory, plan }) {
    const { limit } = chosen;
    const fragments = selectTables(memory.tables, plan, chosen).map((table) =>
      roundsOf(table, { limit, status: memory.statusOf(table) }),
    );
    return listContent(plan.name, "tables", fragments);
  },
});

const roundsOf = keepFragments(
  (table: Table, { limit, status }: { limit: number; status: Status }) => {
    const { house, game, market, lastRoundAt } = table;
    const about = JSON.stringify({ house: house.id, game, market, status, last_round_at: lastRoundAt });
    return `${about.slice(0, -1)},"rounds":[${newestRounds(table.rounds, limit)}]}`;
  },
  ({ limit, status }) => `${limit} ${status}`,
);
