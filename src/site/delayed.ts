import { z } from "zod";
import type { Memory } from "../published/memory.ts";
import type { PublishedReadingJson } from "../forecasts/readings/reading-state.ts";
import { isPastDelay, SECONDS_WITHHELD } from "../published/held-readings.ts";
import { roundsAfter } from "../published/held-rounds.ts";
import type { Table } from "../published/tables.ts";

/** Live data is for callers: public pages withhold the newest rounds of a table, and those received within the delay. */
export const ROUNDS_WITHHELD = 3;

const heldRound = z.object({
  multiplier: z.number(),
  color: z.string(),
  received_at: z.string(),
  verified: z.boolean().nullable().optional(),
});

/** A round as public pages show it. */
export interface DelayedRound {
  multiplier: string;
  color: string;
}

/** Returns the newest rounds of a table that may be shown, newest first, at most `most`. */
export function delayedRounds(table: Table, memory: Pick<Memory, "clock">, most: number): DelayedRound[] {
  const until = memory.clock().nowMs - SECONDS_WITHHELD * 1_000;
  return roundsAfter(table.rounds, ROUNDS_WITHHELD)
    .map((json) => heldRound.parse(JSON.parse(json)))
    .filter(({ received_at }) => Date.parse(received_at) <= until)
    .take(most)
    .map(({ multiplier, color }) => ({ multiplier: multiplier.toFixed(2), color }))
    .toArray();
}

/** Returns the newest reading that public pages may show; null if there is none. */
export function delayedReading(
  { reading, delayedReadings }: Pick<Table, "reading" | "delayedReadings">,
  nowMs: number,
): PublishedReadingJson | null {
  return [reading, ...delayedReadings.toReversed()].find((one) => one !== null && isPastDelay(one, nowMs)) ?? null;
}
