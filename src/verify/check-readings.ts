import type { Transaction } from "../db/client.ts";
import type { Memories } from "../pass/compute/learn.ts";
import type { StoredTable } from "../pass/stores/load-store.ts";
import type { RoundRow } from "../pass/compute/rows.ts";
import { listStoredAudits, type StoredAudit } from "../forecasts/readings/audit-store.ts";
import type { AuditRow } from "../forecasts/readings/house-audit.ts";
import { EVIDENCE_PER_TABLE, factsOf, type Fact } from "../forecasts/readings/reading-facts.ts";
import type { Wrong } from "./check-round.ts";
import type { VerifiedTable } from "./verified-table-store.ts";

/** An audit row that differs from what the rounds give. */
export interface WrongAudit extends Wrong {
  kind: "audit";
  id: string;
}

/** Depends on the model's weights. */
const NOT_COMPARED = "dependence_weight";

/** Compares the published reading of a table, if it is of this round, with what the rounds give. */
export function checkPublishedReading(
  { table, stored, memories }: { table: VerifiedTable; stored: StoredTable; memories: Memories },
  { seq }: RoundRow,
): (Wrong & { kind: "published_reading"; id: string }) | null {
  const { reading: published } = stored;
  if (published === null || BigInt(published.seq) !== seq) return null;
  const { reading } = memories;
  const colors = table.bands.map(({ name }) => name);
  const required = published.facts.find(({ name }) => name === "dependence_required")?.value ?? 0;
  const tables = Math.round(required / EVIDENCE_PER_TABLE); // how many there were at the time
  const facts = factsOf(reading, { colors, weights: reading.model.parameters.priorWeights, tables });
  const of = (list: readonly Fact[]) => list.filter(({ name }) => name !== NOT_COMPARED).map(factText);
  const [expected, found] = [
    [`rounds ${reading.drift.rounds}`, ...of(facts)],
    [`rounds ${published.rounds}`, ...of(published.facts)],
  ];
  for (let i = 0; i < Math.max(expected.length, found.length); i++) {
    if (expected[i] === found[i]) continue;
    const [want, have] = [expected[i] ?? "no more facts", found[i] ?? "no fact"];
    return { kind: "published_reading", id: table.name, expected: want, found: have };
  }
  return null;
}

function factText({ name, value, expected, rounds, unusual }: Fact): string {
  return `${name} ${value}, expected ${expected}, rounds ${rounds}, unusual ${unusual}`;
}

/** Compares the stored audit rows of a table with those computed from its rounds. */
export async function checkAudits(
  tx: Transaction,
  { id, name }: VerifiedTable,
  rows: ReadonlyMap<string, AuditRow>,
): Promise<WrongAudit | null> {
  const audits = await listStoredAudits(tx, id);
  const stored = new Map(audits.map((audit) => [audit.hour, audit]));
  const newest = audits.at(-1);
  for (const [hour, row] of rows) {
    const audit = stored.get(hour);
    const wrong = audit === undefined ? { expected: "a row", found: "none" } : checkAudit(row, audit, audit === newest);
    if (wrong !== null) return { kind: "audit", id: `${name} ${hour}`, ...wrong };
  }
  for (const { hour } of audits) {
    if (!rows.has(hour))
      return {
        kind: "audit",
        id: `${name} ${hour}`,
        expected: "none: no round is counted in this hour",
        found: "a row",
      };
  }
  return null;
}

const AUDITED = [
  "seq",
  "rounds",
  "tested",
  "edgePpm",
  "lnE",
  "lnEMax",
  "proven",
  "missing",
  "gaps",
] as const satisfies readonly (keyof AuditRow)[];

function checkAudit(row: AuditRow, audit: StoredAudit, isNewest: boolean): Wrong | null {
  for (const name of AUDITED) {
    if (row[name] !== audit[name]) return { expected: `${name} ${row[name]}`, found: `${name} ${audit[name]}` };
  }
  // conflicts seen after the newest round are counted with the next one
  if (isNewest ? audit.conflicts > audit.conflictsSeen : audit.conflicts !== audit.conflictsSeen) {
    return { expected: `conflicts ${audit.conflictsSeen}`, found: `conflicts ${audit.conflicts}` };
  }
  // settled items are deleted after a time, so there may be fewer of them now
  if (!isNewest && audit.proofsFailed < audit.proofsFailedSeen) {
    return { expected: `proofs_failed ${audit.proofsFailedSeen}`, found: `proofs_failed ${audit.proofsFailed}` };
  }
  return null;
}
