import { z } from "zod";
import {
  forecastState,
  NOTICE,
  showNextColor,
  showWindows,
  type ForecastState,
} from "../forecasts/accuracy/present.ts";
import { keepFragments, listContent } from "./fragments.ts";
import { operation } from "./operation.ts";
import { filters } from "./params.ts";
import { selectTables } from "./select.ts";
import type { Table } from "../published/tables.ts";

/** Forecasts of the next round and of windows for each table, each probability next to its baseline. */
export const forecasts = operation({
  path: "/api/v1/forecasts",
  params: z.strictObject(filters),
  compose(chosen, { memory, plan }) {
    const { nowMs, liveWindowMs } = memory.clock();
    const fragments = selectTables(memory.tables, plan, chosen).map((table) =>
      forecastOf(table, forecastState({ ...table, paused: table.house.paused }, nowMs, liveWindowMs)),
    );
    return listContent(plan.name, "forecasts", fragments, { notice: NOTICE });
  },
});

const forecastOf = keepFragments(
  ({ house, game, market, published, generatedAt, calibration, accuracy }: Table, state: ForecastState) =>
    JSON.stringify({
      house: house.id,
      game,
      market,
      state,
      generated_at: generatedAt,
      calibration,
      next_color: showNextColor(published, state),
      windows: showWindows(published, state, accuracy),
    }),
  (state) => state,
);
