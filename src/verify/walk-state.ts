import type { Transaction } from "../db/client.ts";
import { reasonOf } from "../errors.ts";
import type { Memories } from "../pass/compute/learn.ts";
import type { ForecastSetRow, RoundRow, SnapshotRow } from "../pass/compute/rows.ts";
import type { OpenForecast, TableFacts } from "../pass/compute/state.ts";
import { loadTable, type StoredTable } from "../pass/stores/load-store.ts";
import { emptyReferences } from "../forecasts/accuracy/figures/references.ts";
import { emptyState } from "../forecasts/model/k7.ts";
import type { Model } from "../forecasts/model/model.ts";
import { modelOfState, stateHash } from "../forecasts/model/state.ts";
import { modelOf } from "../forecasts/model/table-model.ts";
import type { AuditRow } from "../forecasts/readings/house-audit.ts";
import { emptyReading } from "../forecasts/readings/reading-memory.ts";
import { FIRST_PREVIOUS_HASH } from "../record/hashes.ts";
import { FIRST_ROUND, type RoundBefore, type Wrong } from "./check-round.ts";
import { beginScores, type ScoreWalk } from "./check-scores.ts";
import type { VerifiedTable } from "./verified-table-store.ts";
import { listDisputes, readPromotions, listScoreRevisions } from "./verify-store.ts";
import { beginProofNumbers, type ProofNumbers } from "./verify-unproven.ts";

/** The first of a table's rounds, forecasts and scores that differs from what its rounds give. */
export interface WalkFailure extends Wrong {
  kind: "round" | "forecast" | "score" | "table" | "snapshot" | "published_reading";
  id: string;
}

/** A forecast that was settled late because settling had been paused: until then it was open. */
interface LateSettled {
  forecast: OpenForecast;
  scoredAt: string;
}

/** A table after some of its rounds. */
export interface Walk {
  purpose: "verify" | "rebuild";
  table: VerifiedTable;
  stored: StoredTable;
  facts: TableFacts;
  before: RoundBefore;
  proofs: ProofNumbers;
  newest: RoundRow | null;
  model: Model;
  memories: Memories;
  /** The state that was promoted at a round, by seq. */
  promotions: ReadonlyMap<bigint, Buffer>;
  /** The round after which the newest promotion was made. */
  promotedSeq: bigint;
  audits: Map<string, AuditRow>;
  isSnapshotChecked: boolean;
  open: OpenForecast[];
  lateSettled: LateSettled[];
  scores: ScoreWalk;
  set: ForecastSetRow | null;
  firstSet: ForecastSetRow | null;
  forecastSeq: bigint;
  forecastHash: string;
}

/** Begins before the first round of a table. Returns a failure if its state or head cannot be used. */
export async function beginWalk(
  tx: Transaction,
  table: VerifiedTable,
  purpose: Walk["purpose"],
): Promise<Walk | WalkFailure> {
  try {
    return await stateAtStart(tx, table, purpose);
  } catch (error) {
    return { kind: "table", id: table.name, expected: "a state with the model's beginning", found: reasonOf(error) };
  }
}

async function stateAtStart(tx: Transaction, table: VerifiedTable, purpose: Walk["purpose"]): Promise<Walk> {
  const stored = await loadTable(tx, table.id);
  if (stored === null) throw new Error(`expected a head of ${table.name}, found none`);
  const { id: tableId, name, bands, edge, consecutive } = table;
  const isUsable = purpose === "verify" || isUndamaged(table.state, stored.snapshot);
  const model = isUsable && table.state !== null ? modelOfState(table.state) : modelOf(bands, edge);
  if (model.name !== table.firstModel)
    throw new Error(`expected ${name} to begin with ${table.firstModel}, found a state or settings of ${model.name}`);
  return {
    purpose,
    table,
    stored,
    facts: {
      tableId,
      name,
      bands,
      edge,
      resets: table.resets.map((reset) => ({ ...reset, above: 0 })), // counted again
      roundIds: consecutive ? "consecutive" : "opaque",
    },
    before: FIRST_ROUND,
    proofs: beginProofNumbers(),
    newest: null,
    model,
    memories: {
      k7: emptyState(model),
      references: emptyReferences(model.colors),
      reading: emptyReading(model, { consecutive }),
    },
    promotions: await readPromotions(tx, tableId),
    promotedSeq: 0n,
    audits: new Map(),
    isSnapshotChecked: false,
    open: [],
    lateSettled: [],
    scores: beginScores(table, await listScoreRevisions(tx, tableId), await listDisputes(tx, tableId)),
    set: null,
    firstSet: null,
    forecastSeq: 0n,
    forecastHash: FIRST_PREVIOUS_HASH,
  };
}

/** False if a state is that of the snapshot but does not have the hash in the snapshot. */
function isUndamaged(state: Buffer | null, snapshot: SnapshotRow | null): boolean {
  return (
    state === null || snapshot === null || !state.equals(snapshot.state) || stateHash(state) === snapshot.stateHash
  );
}
