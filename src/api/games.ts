import { z } from "zod";
import { keepFragments, listContent } from "./fragments.ts";
import { operation } from "./operation.ts";
import { filters, statusFilter } from "./params.ts";
import { selectTables } from "./select.ts";
import type { Status } from "../houses/status.ts";
import type { Table } from "../published/tables.ts";

/** The tables of the caller's plan, and whether each is live now; each with exactly these eight fields. */
export const games = operation({
  path: "/api/v1/games",
  params: z.strictObject({ ...filters, status: statusFilter }),
  compose(chosen, { memory, plan }) {
    const { status } = chosen;
    const fragments = selectTables(memory.tables, plan, chosen).flatMap((table) => {
      const current = memory.statusOf(table);
      return status?.includes(current) === false ? [] : [gameOf(table, current)];
    });
    return listContent(plan.name, "games", fragments);
  },
});

const gameOf = keepFragments(
  ({ house, game, market, continuityText, lastRoundAt, rounds }: Table, status: Status) =>
    JSON.stringify({
      house: house.id,
      game,
      market,
      continuity_notice: continuityText !== null,
      continuity_text: continuityText,
      status,
      last_round_at: lastRoundAt,
      buffered_rounds: rounds.length,
    }),
  (status) => status,
);
