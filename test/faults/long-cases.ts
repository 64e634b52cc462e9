import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../src/db/client.ts";
import { Broken } from "../simulate/broken.ts";
import { ASKED, type FaultCase } from "./case.ts";
import { NotReached, stallCommits } from "./hold.ts";

const SLOW_FOR_MS = 10_000;
const SLOW_COMMIT_MS = 400;
const BETWEEN_MS = 100;
const BACK_MS = -60_000;
const ALERT_WITHIN_MS = 60_000;
const QUEUE = "roll-up-usage";

/** A disk that is slow or full, a clock that steps back, and work that was not done for days. */
export const LONG_CASES: readonly FaultCase[] = [
  {
    name: "a slow disk: commits take 0.4 s for 10 s",
    askedSeconds: ASKED.postgresBack,
    from: "end",
    async run({ sql }) {
      for (const end = Date.now() + SLOW_FOR_MS; Date.now() < end; await delay(BETWEEN_MS)) {
        const stall = await stallCommits(sql);
        await delay(SLOW_COMMIT_MS);
        await stall.release();
      }
      return { fromMs: Date.now() };
    },
  },
  {
    name: "the disk of PostgreSQL's log is full for 6 s",
    askedSeconds: null,
    from: "end",
    async run({ servers }) {
      if (!servers.hasDisk) throw new NotReached("no disk can be made to be full here");
      await servers.fillDisk(1 << 20, 6_000, { isLogToo: true });
      return { fromMs: Date.now() };
    },
  },
  {
    name: "a worker whose clock steps 60 s back",
    askedSeconds: null,
    from: "end",
    async run({ sql, workers, polls, houses }) {
      const [worker] = workers;
      const beganMs = Date.now();
      worker?.setClock(BACK_MS);
      try {
        await until("a clock that is 60 s behind was not noticed", 90_000, async () => {
          return (await sql`select from workers where clock_problem is not null`).length > 0;
        });
      } finally {
        worker?.setClock(0);
      }
      const noticedMs = Date.now();
      const silence = polls.longestSilence(beganMs, noticedMs, houses);
      const noticed = ((noticedMs - beganMs) / 1_000).toFixed(0);
      return {
        fromMs: noticedMs,
        seen: `noticed after ${noticed} s; until then silent for ${silence.toFixed(1)} s at most`,
      };
    },
  },
  {
    name: "four days without a roll-up of usage",
    askedSeconds: null,
    from: "end",
    async run({ sql }) {
      const beganMs = Date.now();
      await sql`
        insert into queue_controls (queue, paused_by, reason)
        values (${QUEUE}, 'faults', 'nothing is summed for four days')`;
      await addFourDays(sql);
      await until(
        "four days without a roll-up raised no alert",
        ALERT_WITHIN_MS,
        async () => (await countBehind(sql)) === 4,
      );
      const raised = ((Date.now() - beganMs) / 1_000).toFixed(0);
      await sql`delete from queue_controls where queue = ${QUEUE}`;
      const resumedMs = Date.now();
      await until("four days were not summed", ALERT_WITHIN_MS, async () => (await countBehind(sql)) === 0);
      const [row] = await sql<{ closed: number }[]>`
        select count(*)::integer as closed
        from usage_days
        where is_closed
          and day < (now() at time zone 'UTC')::date - 1`;
      if (row?.closed !== 4) throw new Broken(`of four days without a roll-up ${row?.closed ?? 0} were closed`);
      const over = ((Date.now() - resumedMs) / 1_000).toFixed(0);
      return { fromMs: Date.now(), seen: `alert after ${raised} s, over ${over} s after the queue was resumed` };
    },
  },
];

/** Calls of another account than the one at work, on the four days before yesterday, as the meter stores them. */
async function addFourDays(sql: Sql): Promise<void> {
  await sql`select make_day_partitions((now() at time zone 'UTC')::date - 5, 4)`;
  await sql`
    insert into usage_facts (minute, key_id, account_id, endpoint, batch, n)
    select ((now() at time zone 'UTC')::date - n)::timestamp at time zone 'UTC' + interval '12 hours',
      k.id, k.account_id, 'rounds', nextval('usage_batches'), 1000
    from keys k
    join accounts a on a.id = k.account_id
    cross join generate_series(2, 5) n
    where a.email = 'pro@example.com'`;
  await sql`
    insert into quotas (account_id, period, used)
    select c.account_id, to_char(c.day, 'YYYY-MM-DD'), sum(c.n)
    from usage_counts c
    join accounts a on a.id = c.account_id
    where a.email = 'pro@example.com'
      and c.day < (now() at time zone 'UTC')::date - 1
    group by c.account_id, c.day`;
}

async function countBehind(sql: Sql): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::integer as n
    from alerts
    where kind = 'usage_behind'
      and closed_at is null`;
  return row?.n ?? 0;
}

async function until(what: string, withinMs: number, isTrue: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + withinMs; !(await isTrue()); await delay(250)) {
    if (Date.now() > end) throw new Broken(`${what} within ${withinMs / 1_000} s`);
  }
}
