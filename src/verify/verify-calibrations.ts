import canonicalize from "canonicalize";
import type { Transaction } from "../db/client.ts";
import type { Wrong } from "./check-round.ts";
import {
  findBase,
  listCalibrationsAfter,
  recordHash,
  type WholeCalibration,
} from "../calibration/calibration-store.ts";
import { replayUpTo, resumeReplay, snapshotOf, startReplay } from "../calibration/backtest/replay.ts";
import { modelOfState, stateHash } from "../forecasts/model/state.ts";
import type { Band } from "../forecasts/model/table-model.ts";

const RECORDS_PER_READ = 50;
const ROUNDS_PER_CHUNK = 20_000;

/** A calibration that differs from what its facts give. */
export type WrongCalibration = Wrong & { kind: "calibration"; id: string };

/**
 * Checks the calibrations of a table: the hash of every record covers its state and its facts, and the rounds since the
 * previous record, replayed, give the newest record of the live state bit for bit, including all sums.
 *
 * @param counted called for each record, with the number of replayed rounds
 */
export async function verifyCalibrations(
  tx: Transaction,
  table: { id: number; bands: readonly Band[] },
  counted: (what: "calibrations" | "replayed_rounds", count: number) => void,
): Promise<WrongCalibration | null> {
  let afterId = "0";
  let newest: WholeCalibration | null = null;
  for (;;) {
    const records = await listCalibrationsAfter(tx, table.id, { afterId, limit: RECORDS_PER_READ });
    for (const record of records) {
      const found = checkRecord(record);
      if (found !== null) return found;
      counted("calibrations", 1);
      if (record.kind !== "manual") newest = record;
      afterId = record.id;
    }
    if (records.length < RECORDS_PER_READ) break;
  }
  return newest === null ? null : checkByReplay(tx, table, newest, counted);
}

function checkRecord(record: WholeCalibration): WrongCalibration | null {
  const ofState = stateHash(record.state);
  if (ofState !== record.stateHash)
    return wrong(record, `a state with hash ${record.stateHash}`, `one with hash ${ofState}`);
  const ofRecord = recordHash(record);
  if (ofRecord !== record.recordHash)
    return wrong(record, `facts with hash ${record.recordHash}`, `facts with hash ${ofRecord}`);
  return null;
}

async function checkByReplay(
  tx: Transaction,
  { id: tableId, bands }: { id: number; bands: readonly Band[] },
  record: WholeCalibration,
  counted: (what: "replayed_rounds", count: number) => void,
): Promise<WrongCalibration | null> {
  const table = { tableId, bands, hasOtherBands: false };
  const base = await findBase(tx, record);
  const replay =
    base === null ? startReplay(table, modelOfState(record.state), record.beginSeq, record) : resumeReplay(table, base);
  const since = base === null ? "its first round" : `calibration ${base.id}`;
  await replayUpTo(tx, replay, record.toSeq, {
    roundsPerChunk: ROUNDS_PER_CHUNK,
    afterChunk: (rounds) => Promise.resolve(counted("replayed_rounds", rounds)),
  });
  const replayed = snapshotOf(replay);
  if (replayed.stateHash !== record.stateHash)
    return wrong(record, `the state ${replayed.stateHash}, by replay from ${since}`, record.stateHash);
  if (replayed.rounds !== record.rounds)
    return wrong(record, `${replayed.rounds} rounds, by replay from ${since}`, `${record.rounds}`);
  for (const part of ["sums", "carry", "weights"] as const) {
    if (canonicalize(replayed[part]) !== canonicalize(record[part]))
      return wrong(record, `the ${part} of a replay from ${since}`, `others`);
  }
  return null;
}

function wrong({ id, table }: WholeCalibration, expected: string, found: string): WrongCalibration {
  return { kind: "calibration", id, expected: `${expected} (${table})`, found };
}
