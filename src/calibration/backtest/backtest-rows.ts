/**
 * The forecasts of a replay as lines in the format of the forecast export, in a separate hash chain.
 *
 * The forecasts were never issued: `issued_at`, `absent_at`, `pause_ms` and `scored_at` are empty and ids begin with
 * `backtest-`, so that no line can be taken for a claim made in advance. Every run over the same rounds gives the same
 * bytes. `target_round_id` is the scored round, also after missing ones; the first line follows no round: its cutoff is
 * empty and its hash 64 zeros.
 */
import { z } from "zod";
import { FIRST_PREVIOUS_HASH, forecastHash } from "../../record/hashes.ts";
import type { ExportedForecast } from "../../forecasts/chain/export-store.ts";
import type { ChunkListener } from "./replay.ts";

/** State of the lines: the hash that the next one follows, and lines that wait for an earlier one to be scored. */
export type RowsMark = z.infer<typeof markSchema>;

/** Lines in progress. */
export interface BacktestRows {
  listener: ChunkListener;
  /** Returns scored lines, each once and in order; at the end all remaining ones, open ones included. */
  take(options?: { isEnd?: boolean }): ExportedForecast[];
  mark(): RowsMark;
  /** Hash of the last line that was taken; null before the first. */
  writtenHash(): string | null;
}

const rowSchema = z.strictObject({
  seq: z.string(),
  forecast_id: z.string(),
  table: z.string(),
  model: z.string(),
  feature: z.string(),
  issued_at: z.string(),
  absent_at: z.string(),
  pause_ms: z.string(),
  cutoff_round_id: z.string(),
  history_hash: z.string(),
  target_round_id: z.string(),
  horizon: z.string(),
  p_ppm: z.string(),
  base_ppm: z.string(),
  status: z.string(),
  outcome: z.string(),
  scored_at: z.string(),
  prev_hash: z.string(),
  hash: z.string(),
}) satisfies z.ZodType<ExportedForecast>;
const markSchema = z.strictObject({
  seq: z.string().regex(/^\d+$/),
  prevHash: z.string(),
  cutoffRoundId: z.string(),
  historyHash: z.string(),
  waiting: z.array(rowSchema),
});

/**
 * The lines of a replay from its start, or from a mark.
 *
 * @throws Error on a damaged mark
 */
export function backtestRows(
  of: { table: string; model: string; consecutive: boolean; colors: readonly string[]; features: readonly string[] },
  from: unknown = null,
): BacktestRows {
  const mark = from === null ? FIRST : markSchema.parse(from);
  let seq = BigInt(mark.seq);
  let { prevHash } = mark;
  let cutoff = { roundId: mark.cutoffRoundId, historyHash: mark.historyHash };
  const waiting: ExportedForecast[] = mark.waiting.map((row) => ({ ...row }));
  const open = new Map(waiting.filter(({ status }) => status === "open").map((row) => [row.feature, row]));

  function add(feature: string, horizon: number, target: string, p: string, base: string): ExportedForecast {
    seq += 1n;
    const fields = {
      seq: String(seq),
      forecast_id: `backtest-${seq}`,
      table: of.table,
      model: of.model,
      feature,
      issued_at: "",
      absent_at: "",
      pause_ms: "",
      cutoff_round_id: cutoff.roundId,
      history_hash: cutoff.historyHash,
      target_round_id: of.consecutive ? target : "",
      horizon: String(horizon),
      p_ppm: p,
      base_ppm: base,
    };
    const hash = forecastHash(prevHash, fields);
    const row = { ...fields, status: "open", outcome: "", scored_at: "", prev_hash: prevHash, hash };
    prevHash = hash;
    waiting.push(row);
    return row;
  }

  return {
    listener({ roundIds, historyHashes }) {
      let index = 0;
      return {
        round(next) {
          index = next;
        },
        nextColor(pPpm, basePpm, outcome) {
          const row = add("next_color", 1, roundIds[index] ?? "", pPpm.join("|"), basePpm.join("|"));
          row.status = "scored";
          row.outcome = of.colors[outcome] ?? "";
          cutoff = { roundId: roundIds[index] ?? "", historyHash: historyHashes[index] ?? "" };
        },
        windowIssued(number, rounds, pPpm, basePpm) {
          const feature = of.features[number] ?? "";
          const target = of.consecutive ? String(BigInt(cutoff.roundId) + 1n) : "";
          open.set(feature, add(feature, rounds, target, String(pPpm), String(basePpm)));
        },
        windowEnded(number, outcome) {
          const feature = of.features[number] ?? "";
          const row = open.get(feature);
          if (row === undefined) throw new Error(`expected an open ${feature} in the file of a replay, found none`);
          row.status = outcome === "void_gap" ? outcome : "scored";
          row.outcome = outcome === "void_gap" ? "" : outcome ? "1" : "0";
          open.delete(feature);
        },
      };
    },
    take({ isEnd = false } = {}) {
      const end = isEnd ? waiting.length : waiting.findIndex(({ status }) => status === "open");
      return waiting.splice(0, end === -1 ? waiting.length : end);
    },
    writtenHash() {
      const hash = waiting[0]?.prev_hash ?? prevHash;
      return hash === FIRST_PREVIOUS_HASH ? null : hash;
    },
    mark: () => ({
      seq: String(seq),
      prevHash,
      cutoffRoundId: cutoff.roundId,
      historyHash: cutoff.historyHash,
      waiting: waiting.map((row) => ({ ...row })),
    }),
  };
}

const FIRST: RowsMark = {
  seq: "0",
  prevHash: FIRST_PREVIOUS_HASH,
  cutoffRoundId: "",
  historyHash: FIRST_PREVIOUS_HASH,
  waiting: [],
};
