import { describe, expect, test } from "vitest";
import type { Sql, Transaction } from "../../../src/db/client.ts";
import { saveForecasts, type PreparedForecast } from "../../../src/forecasts/issue/issue-store.ts";
import { eventually } from "../../support/eventually.ts";
import { addRounds, createWorld, PAUSE_MS, readAll, saveUnread, type World } from "../world.ts";

/** What a forger may say of a forecast; the rest is as it should be. */
interface Forgery {
  cutoffSeq?: bigint;
  cutoffRoundId?: string;
  historyHash?: string;
  /** Seconds before now. */
  issuedAgo?: number;
}

/** Inserts a forecast after the newest on-time round past all our code, as `changes` would have it. */
async function forge(sql: Sql | Transaction, tableId: number, changes: Forgery = {}): Promise<void> {
  await sql`
    insert into forecasts (
      table_id, seq, forecast_id, model, feature, issued_at, issue_hour, cutoff_seq, cutoff_round_id, history_hash,
      horizon, p_ppm, base_ppm, prev_hash, hash
    )
    select
      ${tableId}, cutoff.seq * 1000 + floor(random() * 1000), gen_random_uuid()::text, 'k7@1', 'next_color', issued.at,
      date_trunc('hour', issued.at, 'UTC'), cutoff.seq, coalesce(${changes.cutoffRoundId ?? null}, cutoff.round_id),
      coalesce(${changes.historyHash ?? null}, cutoff.history_hash), 1, '{900000,100000}', '{500000,500000}', '', ''
    from (select clock_timestamp() - ${changes.issuedAgo ?? 0} * interval '1 second' as at) issued
    cross join (
      select seq, round_id, history_hash
      from rounds
      where table_id = ${tableId}
        and (seq = ${changes.cutoffSeq ?? null}::bigint or (${changes.cutoffSeq ?? null}::bigint is null and not late))
      order by seq desc
      limit 1
    ) cutoff`;
}

const TOO_LATE = { code: "RH002" };
const UNTRUE = { code: "RH001" };

async function countForecasts({ sql, tableId }: World): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::integer as n
    from forecasts
    where table_id = ${tableId}`;
  return row?.n ?? -1;
}

/** Waits until a connection of the test waits for a lock. */
async function untilBlocked({ sql }: World): Promise<void> {
  await eventually(async () => {
    const [row] = await sql<{ n: number }[]>`
      select count(*)::integer as n
      from pg_stat_activity
      where datname = current_database()
        and wait_event_type = 'Lock'`;
    return (row?.n ?? 0) > 0;
  });
}

describe("a forecast cannot be issued late: the database refuses", () => {
  test("nothing of one that is as it should be", async () => {
    const world = await createWorld();
    await world.play([{ hundredths: 150, absentAgo: 1 }]);
    await forge(world.sql, world.tableId);
    expect(await countForecasts(world)).toBe(1);
  });

  const forgeries: [string, (world: World) => Promise<Forgery>, object][] = [
    [
      "one for a round that is there",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: 1 }]);
        await world.play([{ hundredths: 150, absentAgo: 1 }]);
        return { cutoffSeq: 1n };
      },
      TOO_LATE,
    ],
    [
      "one for a round long ago",
      async (world) => {
        for (let n = 0; n < 5; n++) await world.play([{ hundredths: 150, absentAgo: 1 }]);
        return { cutoffSeq: 2n };
      },
      TOO_LATE,
    ],
    [
      "one whose issue is dated before the round that is there",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: 30 }]);
        await world.play([{ hundredths: 150, absentAgo: 1 }]);
        return { cutoffSeq: 1n, issuedAgo: 20 };
      },
      TOO_LATE,
    ],
    [
      "one that is dated back, though nothing has come",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: 30 }]);
        return { issuedAgo: 2 };
      },
      TOO_LATE,
    ],
    [
      "one from the future",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: 1 }]);
        return { issuedAgo: -60 };
      },
      UNTRUE,
    ],
    [
      "one while an answer is not read",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: 1 }]);
        await saveUnread(world.sql, world.tableId);
        return {};
      },
      TOO_LATE,
    ],
    [
      "one after the pause",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: PAUSE_MS / 1000 }]);
        return {};
      },
      TOO_LATE,
    ],
    [
      "one after a round that may always have been there",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: null }]);
        return {};
      },
      TOO_LATE,
    ],
    [
      "one after a late round",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: 1 }]);
        await world.play([{ hundredths: 150, absentAgo: 1, roundId: "3", late: true }]);
        return { cutoffSeq: 2n };
      },
      UNTRUE,
    ],
    [
      "one after an imported round",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: 1, source: "import" }]);
        return {};
      },
      UNTRUE,
    ],
    [
      "one with another history than the table's",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: 1 }]);
        return { historyHash: "ab".repeat(32) };
      },
      UNTRUE,
    ],
    [
      "one that names another round as its cutoff",
      async (world) => {
        await world.play([{ hundredths: 150, absentAgo: 1 }]);
        return { cutoffRoundId: "1002" };
      },
      UNTRUE,
    ],
  ];
  test.each(forgeries)("%s", async (_, prepare, refusal) => {
    const world = await createWorld();
    const forgery = await prepare(world);
    await expect(forge(world.sql, world.tableId, forgery)).rejects.toMatchObject(refusal);
    expect(await countForecasts(world)).toBe(0);
  });

  test("also where it is put into a partition by name", async () => {
    const world = await createWorld();
    await world.play([{ hundredths: 150, absentAgo: 1 }]);
    await world.turn(150);
    const [partition] = await world.sql<{ name: string }[]>`
      select tableoid::regclass::text as name
      from forecasts
      where table_id = ${world.tableId}`;
    await world.play([150]);
    const copied = world.sql.unsafe(
      `insert into ${partition?.name} select table_id, seq + 1000, 'again', model, 'other', issued_at, issue_hour,
        cutoff_seq, cutoff_round_id, history_hash, target_round_id, horizon, p_ppm, base_ppm, prev_hash, hash
      from forecasts where table_id = ${world.tableId} and feature = 'next_color'`,
    );
    await expect(copied).rejects.toMatchObject(TOO_LATE);
  });

  test("a bug that names a wrong cutoff is an error, not a refusal that is tried again", async () => {
    const world = await createWorld();
    await world.play([{ hundredths: 150, absentAgo: 1 }]);
    const [clock] = await world.sql<{ now: string }[]>`select utc_text(clock_timestamp()) as now`;
    const forecast: PreparedForecast = {
      tableId: world.tableId,
      seq: 1n,
      forecastId: "f",
      table: world.tableName,
      model: "k7@1",
      feature: "next_color",
      issuedAt: clock?.now ?? "",
      cutoffSeq: 7n,
      cutoffRoundId: "1001",
      historyHash: "ab".repeat(32),
      targetRoundId: null,
      horizon: 1,
      pPpm: [500_000, 500_000],
      basePpm: [500_000, 500_000],
      prevHash: "0".repeat(64),
      hash: "cd".repeat(32),
    };
    await expect(world.sql.begin((tx) => saveForecasts(tx, [forecast]))).rejects.toMatchObject(UNTRUE);
  });
});

describe("a forecast cannot be issued late, at the same time as rounds come in", () => {
  test("an insert without the table's lock waits for a round that is being taken in, and is refused", async () => {
    const world = await createWorld();
    await world.play([{ hundredths: 150, absentAgo: 1 }]);
    let forged: Promise<void> | undefined;
    await world.sql.begin(async (tx) => {
      await addRounds(tx, world.tableId, [300]);
      forged = forge(world.sql, world.tableId, { cutoffSeq: 1n });
      forged.catch(() => undefined);
      await untilBlocked(world);
    });
    await expect(forged).rejects.toMatchObject(TOO_LATE);
    expect(await countForecasts(world)).toBe(0);
  });

  test("a run of the job waits for it too, and speaks of the round after it", async () => {
    const world = await createWorld();
    await world.turn(150);
    await world.play([150]);
    let issuing: ReturnType<World["issue"]> | undefined;
    await world.sql.begin(async (tx) => {
      await addRounds(tx, world.tableId, [300]);
      issuing = world.issue();
      await untilBlocked(world);
    });
    expect(await issuing).toMatchObject({ learned: 2, issued: 1 });
    const rows = await world.sql`select distinct cutoff_seq::integer from forecasts where table_id = ${world.tableId}`;
    expect(rows.map(({ cutoff_seq }) => cutoff_seq as number)).toEqual([3]);
  });

  test("no round comes in between the look and the commit: the take-in waits", async () => {
    const world = await createWorld();
    await world.play([{ hundredths: 150, absentAgo: 1 }]);
    let taking: Promise<void> | undefined;
    await world.sql.begin(async (tx) => {
      await forge(tx, world.tableId);
      taking = world.play([300]);
      await untilBlocked(world);
      const [row] = await tx<{ n: number }[]>`
        select count(*)::integer as n
        from rounds
        where table_id = ${world.tableId}`;
      expect(row?.n).toBe(1);
    });
    await taking;
    expect(await countForecasts(world)).toBe(1);
  });

  test("a transaction with an old view of the table cannot write from it", async () => {
    const world = await createWorld();
    await world.play([{ hundredths: 150, absentAgo: 1 }]);
    const forged = world.sql.begin("isolation level repeatable read", async (tx) => {
      await tx`select from rounds where table_id = ${world.tableId}`;
      await world.play([300]);
      await forge(tx, world.tableId, { cutoffSeq: 1n });
    });
    await expect(forged).rejects.toMatchObject({ code: "40001" });
    expect(await countForecasts(world)).toBe(0);
  });

  test("whoever inserts while rounds stream in succeeds only after the newest round", async () => {
    const world = await createWorld({ connections: 6 });
    // two, so that there is one before the newest to speak of: after none a forger inserts nothing and is not refused
    await world.play([150, { hundredths: 150, absentAgo: 1 }]);
    let playing = true;
    const outcomes = { stood: 0, refused: 0, wrong: 0 };
    async function attack(behind: bigint): Promise<void> {
      while (playing) {
        const [row] = await world.sql<
          { seq: bigint }[]
        >`select last_seq as seq from tables where id = ${world.tableId}`;
        const cutoffSeq = (row?.seq ?? 1n) - behind;
        await world.sql
          .begin(async (tx) => {
            await forge(tx, world.tableId, { cutoffSeq });
            const [newest] = await tx<{ seq: bigint }[]>`
              select max(seq) as seq
              from rounds
              where table_id = ${world.tableId}`;
            if (newest?.seq !== cutoffSeq) outcomes.wrong += 1;
          })
          .then(
            () => (outcomes.stood += 1),
            () => (outcomes.refused += 1), // a round follows, or it was said before
          );
      }
    }
    async function play(): Promise<void> {
      for (let n = 0; n < 150; n++) await world.play([{ hundredths: 150, absentAgo: 1 }]);
      // on a fast machine no forger came in between
      await eventually(() => outcomes.stood > 0);
      playing = false;
    }
    await Promise.all([play(), attack(0n), attack(0n), attack(1n)]);
    expect(outcomes.wrong).toBe(0);
    expect(outcomes.stood).toBeGreaterThan(0);
    expect(outcomes.refused).toBeGreaterThan(0);
  });
});

describe("a forecast that could have been known after all is void", () => {
  test("where the answer was asked for before the issue and saved between the look and the commit", async () => {
    const world = await createWorld();
    await world.turn(150);
    await world.play([150]);
    await world.sql.begin(async (tx) => {
      await forge(tx, world.tableId);
      await tx`
        insert into open_forecasts (table_id, seq, model, feature, cutoff_seq, horizon, issue_hour)
        select table_id, seq, model, feature, cutoff_seq, horizon, issue_hour
        from forecasts
        where table_id = ${world.tableId}`;
      await tx`
        update tables
        set
          first_forecast_at = clock_timestamp(),
          first_forecast_after_seq = 2
        where id = ${world.tableId}`;
      await saveUnread(world.sql, world.tableId, 60);
    });
    await world.play([{ hundredths: 150, requestedAgo: 60, receivedAgo: 0, absentAgo: 61 }]);
    await readAll(world.sql, world.tableId);
    expect(await world.score()).toMatchObject({ scored: 0, voided: 1 });
    const [score] = await world.sql`
      select status, outcome, ll
      from scores
      where table_id = ${world.tableId}`;
    expect(score).toEqual({ status: "void_late", outcome: null, ll: null });
  });

  test.each([
    ["at the moment of its issue", "f.issued_at"],
    ["before its issue", "f.issued_at - interval '1 microsecond'"],
    ["nobody knows when", "null"],
  ])("a score for a target that was asked for %s is refused", async (_, requestedAt) => {
    const world = await createWorld();
    await world.play([150]);
    await world.turn(150);
    const inserted = world.sql.unsafe(`
      insert into scores (
        table_id, forecast_seq, rev, model, feature, issue_hour, issued_at, status, settled_seq, target_requested_at,
        outcome, hit, p, base_p, brier, brier_base, rps, rps_base, ll, ll_base
      )
      select table_id, seq, 1, model, feature, issue_hour, issued_at, 'scored', 3, ${requestedAt},
        0, true, 1, 1, 1, 1, 1, 1, 1, 1
      from forecasts f where table_id = ${world.tableId} and feature = 'next_color'`);
    await expect(inserted).rejects.toMatchObject({ constraint: "forecast_was_issued_before_its_round" });
  });
});
