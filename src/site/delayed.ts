import { z } from "zod";
import type { Memory } from "../published/memory.ts";
import type { PublishedReadingJson } from "../forecasts/readings/reading-state.ts";
import { roundsAfter } from "../published/held-rounds.ts";
import type { Table } from "../published/tables.ts";

/** Live data is for callers: public pages withhold the newest rounds of a table, and those received within a minute. */
export const ROUNDS_WITHHELD = 3;
export const SECONDS_WITHHELD = 60;

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

/**
 * Delays readings: one is shown when it is a minute old, even if a newer one exists. Readings are collected
 * when a page is requested, so those made between two requests may be skipped.
 */
export function delayReadings(): (table: Table, nowMs: number) => PublishedReadingJson | null {
  const held = new Map<number, PublishedReadingJson[]>();
  return ({ id, reading }, nowMs) => {
    const isOldEnough = ({ made_at }: PublishedReadingJson) => Date.parse(made_at) <= nowMs - SECONDS_WITHHELD * 1_000;
    const known = held.get(id) ?? [];
    if (reading !== null && known.at(-1)?.made_at !== reading.made_at) known.push(reading);
    const shown = known.findLast(isOldEnough) ?? null;
    held.set(id, shown === null ? known.slice(-8) : known.slice(known.indexOf(shown)).slice(-8));
    return shown;
  };
}
