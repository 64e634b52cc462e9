import { forecastHash, forecastStrings } from "../chain/chain.ts";
import { NEXT_COLOR } from "../model/features.ts";
import { forecastIdOf } from "../chain/forecast-id.ts";
import type { PreparedForecast } from "./issue-store.ts";
import type { LockedTable } from "./tables-to-issue-store.ts";
import { windowsToIssue } from "./issue-windows.ts";
import type { State } from "../model/k7.ts";
import type { Model } from "../model/model.ts";
import { nextColorOf } from "../model/table-model.ts";

/**
 * What is said after the newest round of a table, in the order of its chain: the next color, then each window whose
 * feature is not `open`, by color and target.
 */
export function prepareForecasts(
  { table, model, state }: { table: LockedTable; model: Model; state: State },
  open: { has(feature: string): boolean },
  issuedAt: string,
): PreparedForecast[] {
  const { newest } = table;
  if (newest === null) throw new Error(`expected a newest round of ${table.name} to forecast after, got none`);
  const stated = [
    { feature: NEXT_COLOR, horizon: 1, ...nextColorOf(model, state) },
    ...windowsToIssue(model, state, table.bands, open).map(({ feature, rounds, pPpm, basePpm }) => ({
      feature,
      horizon: rounds,
      pPpm: [pPpm],
      basePpm: [basePpm],
    })),
  ];
  let [seq, prevHash] = [table.forecastSeq, table.forecastHash];
  return stated.map((one) => {
    seq += 1n;
    const forecast = {
      tableId: table.tableId,
      seq,
      forecastId: forecastIdOf(table.tableId, seq),
      table: table.name,
      model: model.name,
      issuedAt,
      cutoffSeq: newest.seq,
      cutoffRoundId: newest.roundId,
      historyHash: newest.historyHash,
      targetRoundId: table.consecutive ? String(BigInt(newest.roundId) + 1n) : null,
      prevHash,
      ...one,
    };
    const hash = forecastHash(prevHash, forecastStrings(forecast));
    prevHash = hash;
    return { ...forecast, hash };
  });
}
