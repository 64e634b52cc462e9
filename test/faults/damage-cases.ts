import type { Transaction } from "../../src/db/client.ts";
import { InvariantViolation } from "../simulate/invariant-violation.ts";
import { waitUntil } from "../simulate/wait-until.ts";
import { TARGET_SECONDS, type FaultCase } from "./case.ts";
import { NotReached } from "./locks.ts";
import type { Testbed } from "./testbed.ts";

const TABLE = "h1/g0/all";
const STARTED_WITHIN_MS = 120_000;
const NOTICED_WITHIN_MS = 60_000;
const REPAIRED_WITHIN_MS = 90_000;

/** A damaged row: changed without any guard, as by a failing disk. */
interface Damage {
  what: string;
  /** Returns a function that restores the row, as from a backup; null if `table repair` alone repairs it. */
  damage: (tx: Transaction, tableId: number) => Promise<((tx: Transaction) => Promise<unknown>) | null>;
}

/** A damaged row stops only its own table, raises an alert that names the table, and `table repair` repairs it. */
export const DAMAGE_CASES: readonly FaultCase[] = [
  damageCase({
    what: "state",
    async damage(tx, tableId) {
      const rows = await tx`
        update model_snapshots
        set state = set_byte(state, 9, 255 - get_byte(state, 9))
        where table_id = ${tableId}
        returning table_id`;
      if (rows.length === 0) throw new NotReached("the table has no snapshot yet");
      return null;
    },
  }),
  damageCase({
    what: "head",
    async damage(tx, tableId) {
      await tx`update table_heads set last_seq = last_seq + 7 where table_id = ${tableId}`;
      return null;
    },
  }),
  damageCase({
    what: "forecast set",
    async damage(tx, tableId) {
      const [row] = await tx<{ seq: bigint; features: number[] }[]>`
        select s.cutoff_seq as seq, s.features
        from forecast_sets s
        join table_heads h on h.table_id = s.table_id and s.cutoff_seq = any(h.open_sets)
        where s.table_id = ${tableId}
          and cardinality(s.features) > 1
        order by s.cutoff_seq desc
        limit 1`;
      if (row === undefined) throw new NotReached("the table has no open window");
      const write = (as: number[]) => (one: Transaction) => one`
        update forecast_sets
        set features = ${as}::smallint[]
        where table_id = ${tableId}
          and cutoff_seq = ${row.seq}`;
      await write(row.features.with(1, 99))(tx);
      return write(row.features);
    },
  }),
  damageCase({
    what: "score set",
    async damage(tx, tableId) {
      const [row] = await tx<{ seq: bigint; of: bigint[] }[]>`
        select s.settled_seq as seq, s.forecast_seqs as of
        from score_sets s
        join table_heads h on h.table_id = s.table_id
        where s.table_id = ${tableId}
          and s.cutoff_seqs && h.open_sets
        order by s.settled_seq desc
        limit 1`;
      if (row === undefined) throw new NotReached("no forecast of an open set is scored yet");
      const write = (as: bigint[]) => (one: Transaction) => one`
        update score_sets
        set forecast_seqs = ${as.map(String)}::bigint[]
        where table_id = ${tableId}
          and settled_seq = ${row.seq}`;
      await write(row.of.map((seq) => seq + 1_000_000n))(tx);
      return write(row.of);
    },
  }),
];

function damageCase({ what, damage }: Damage): FaultCase {
  return {
    name: `a damaged ${what}`,
    targetSeconds: TARGET_SECONDS.workerKilled,
    from: "beginning",
    async run(testbed) {
      const { sql, workers } = testbed;
      const tableId = await findTable(testbed);
      const fromMs = Date.now();
      await Promise.all(workers.map((worker) => worker.kill())); // their state in memory is not damaged
      let restore: Awaited<ReturnType<typeof damage>> = null;
      await withoutGuards(testbed, async (tx) => (restore = await damage(tx, tableId)));
      await waitUntil(`the damaged ${what} of ${TABLE} raised no alert`, NOTICED_WITHIN_MS, () => isReported(testbed));
      const noticed = (Date.now() - fromMs) / 1_000;
      await checkOthersContinue(testbed, tableId);
      if (restore !== null) await withoutGuards(testbed, restore);
      testbed.truth.restoredToMs = Date.now();
      const before = await newestSeq(testbed, tableId);
      await testbed.command(["table", "repair", TABLE, "--reason", `a damaged ${what}`]);
      await waitUntil(`${TABLE} does not continue after its repair`, REPAIRED_WITHIN_MS, async () => {
        return (await newestSeq(testbed, tableId)) > before && !(await isReported(testbed));
      });
      const open = await sql`select from alerts where kind = 'table_damaged' and closed_at is null`;
      if (open.length > 0) throw new InvariantViolation("the alert of a damaged table is still open after its repair");
      return {
        fromMs,
        observed: `alert after ${noticed.toFixed(1)} s, repaired after ${((Date.now() - fromMs) / 1_000).toFixed(1)} s`,
      };
    },
  };
}

/** Waits until the table has all that can be damaged: a snapshot, and an open set one of whose forecasts is scored. */
async function findTable({ sql }: Testbed): Promise<number> {
  const [row] = await sql<
    { id: number }[]
  >`select id from tables where house_id || '/' || game || '/' || market = ${TABLE}`;
  if (row === undefined) throw new Error(`expected the table ${TABLE}, found none`);
  await waitUntil(`${TABLE} got no snapshot or no scored forecast of an open set`, STARTED_WITHIN_MS, async () => {
    const found = await sql`
      select
      from table_heads h
      where h.table_id = ${row.id}
        and exists (select from model_snapshots where table_id = h.table_id)
        and exists (select from score_sets s where s.table_id = h.table_id and s.cutoff_seqs && h.open_sets)`;
    return found.length > 0;
  });
  return row.id;
}

/** Changes rows without triggers. */
function withoutGuards({ sql }: Testbed, change: (tx: Transaction) => Promise<unknown>): Promise<unknown> {
  return sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await change(tx);
  });
}

/** Whether an alert names the table; fails if one names another table. */
async function isReported({ sql }: Testbed): Promise<boolean> {
  const rows = await sql<{ subject: string }[]>`
    select subject
    from alerts
    where kind = 'table_damaged'
      and closed_at is null`;
  const other = rows.find(({ subject }) => subject !== TABLE);
  if (other !== undefined) throw new InvariantViolation(`${TABLE} is damaged, but an alert names ${other.subject}`);
  return rows.length > 0;
}

/** Waits until every other table has a new round; the damaged one must not have one. */
async function checkOthersContinue({ sql }: Testbed, tableId: number): Promise<void> {
  const read = () => sql<{ id: number; seq: bigint }[]>`
    select t.id, h.last_seq as seq
    from tables t
    join table_heads h on h.table_id = t.id
    where t.enabled`;
  const before = new Map((await read()).map(({ id, seq }) => [id, seq]));
  await waitUntil(`while ${TABLE} is damaged, another table gets no rounds`, NOTICED_WITHIN_MS, async () => {
    return (await read()).every(({ id, seq }) => id === tableId || seq > (before.get(id) ?? 0n));
  });
  if ((await read()).find(({ id }) => id === tableId)?.seq !== before.get(tableId)) {
    throw new InvariantViolation(`${TABLE} is damaged but stores rounds`);
  }
}

async function newestSeq({ sql }: Testbed, tableId: number): Promise<bigint> {
  const [row] = await sql<
    { seq: bigint }[]
  >`select coalesce(max(seq), 0)::bigint as seq from rounds where table_id = ${tableId}`;
  return row?.seq ?? 0n;
}
