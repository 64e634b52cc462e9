import type { HeadRow } from "../../src/published/store.ts";

/** A row of a table in which nothing was stored yet but nine rounds, as an API reads it. */
export const HEAD: HeadRow = {
  id: 1,
  version: 1,
  house: "alpha",
  game: "crash",
  market: "global",
  position: 1,
  enabled: true,
  roundIds: "consecutive",
  resets: 0,
  lastSeq: 9,
  lastOrdinal: 9,
  newestSeq: 9,
  isLate: false,
  lastRoundAt: null,
  lastPolledMs: null,
  openSets: [],
  hasEnded: false,
  setSeq: null,
  nowPpm: [],
  changedAt: "2026-11-21T12:00:00.0000000Z",
  continuityText: null,
  calibration: null,
  readingAt: null,
  reading: null,
};
