import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, openPipeline, type Pipeline, type Sql, type Transaction } from "../../src/db/client.ts";
import type { ForecastSetRow, ScoreSetRow } from "../../src/pass/compute/rows.ts";
import type { CompletePassRows as PassRows } from "../../src/pass/compute/state.ts";
import { passStatements, refusalOf } from "../../src/pass/stores/write-store.ts";
import { type CoreTable, fromNow, hashOf, makeCoreTables, payloadRow } from "../support/core-rows.ts";
import { createCoreDatabase } from "../support/core-schema.ts";
import { eventually } from "../support/eventually.ts";
import { allowSetAge } from "../support/set-age.ts";

let database: Awaited<ReturnType<typeof createCoreDatabase>>;
let sql: Sql;
let pipeline: Pipeline;
const unused: CoreTable[] = [];

beforeAll(async () => {
  database = await createCoreDatabase();
  sql = connect(database.url, { name: "test", max: 3 });
  pipeline = openPipeline(database.url, { name: "pass", max: 2 });
  unused.push(...(await makeCoreTables(sql, 100)));
});

afterAll(async () => {
  await pipeline.end({ timeout: 1 });
  await sql.end({ timeout: 1 });
  await database.drop();
});

/** A table that no test had yet. */
function freshTable(): CoreTable {
  const table = unused.pop();
  if (table === undefined) throw new Error("expected a table for each test: make more of them");
  return table;
}

/** A table with so many on-time rounds. */
async function playedTable(rounds = 1): Promise<CoreTable> {
  const table = freshTable();
  for (let n = 0; n < rounds; n += 1) await table.play(pipeline);
  return table;
}

/** Expects a refusal with this SQLSTATE and message, and gives true. */
async function expectRefusal(written: Promise<unknown>, code: string, message: RegExp): Promise<void> {
  const error: unknown = await written.then(
    () => new Error("it was stored"),
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ code, message: expect.stringMatching(message) as string });
}

/** Writes a pass in a transaction of single statements, and does something before its commit. */
function writeHeld(rows: PassRows, hold: (tx: Transaction) => Promise<unknown>): Promise<unknown> {
  return sql.begin(async (tx) => {
    for (const statement of passStatements(tx, [rows], [])) await statement;
    await hold(tx);
  });
}

describe("a forecast set", () => {
  it("is stored after its cutoff, and its windows again when they have ended", async () => {
    const table = await playedTable();
    await table.issue(pipeline);
    for (let n = 0; n < 4; n += 1) {
      await table.play(pipeline);
      await table.issue(pipeline);
    }
    const sets = await sql<{ features: number[] }[]>`
      select features
      from forecast_sets
      where table_id = ${table.id}
      order by cutoff_seq`;
    expect(sets.map(({ features }) => features)).toEqual([
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
      [0, 1],
      [0, 1, 2],
      [0, 1, 3],
      [0, 1, 2, 4],
    ]);
  });

  it("is stored with its round, payload and scores in one transaction", async () => {
    const table = await playedTable();
    const first = await table.issue(pipeline);
    const round = table.round();
    const scored = table.scores(round, [
      { set: first, place: 0 },
      { set: first, place: 1 },
    ]);
    const played = { rounds: [round], payloads: [payloadRow()], scoreSets: [scored], head: table.afterRound(round) };
    await table.write(pipeline, played);
    const next = table.round({ absentAt: fromNow(-50) });
    table.newest = next;
    const set = table.set();
    table.head = table.afterRound(next);
    await table.write(pipeline, { rounds: [next], forecastSet: set, head: table.afterSet(set) });
    expect(await sql`select cutoff_seq from forecast_sets where table_id = ${table.id}`).toHaveLength(2);
  });

  const untrue: [string, (table: CoreTable) => Partial<ForecastSetRow>, RegExp][] = [
    ["names a cutoff that is not stored", () => ({ cutoffSeq: 9n }), /to name a stored round/],
    ["names another id of its cutoff", () => ({ cutoffRoundId: "77" }), /to name a stored round/],
    ["names another ordinal of its cutoff", () => ({ cutoffOrdinal: 2n }), /to name a stored round/],
    ["names another history hash", () => ({ historyHash: hashOf("other") }), /to name a stored round/],
    ["claims that its cutoff was absent later", () => ({ absentAt: fromNow(-1) }), /to name a stored round/],
    ["claims a longer pause than the table has", () => ({ pauseMs: 90_000 }), /a head with the pause/],
    ["is issued in the future", () => ({ issuedAt: fromNow(60_000) }), /found a time in the future/],
    ["skips a number of the chain", () => ({ firstSeq: 2n }), /to continue the chain/],
    ["does not continue the hash of the chain", () => ({ prevHash: hashOf("other") }), /to continue the chain/],
    [
      "understates the end of a window",
      (table) => ({ ends: table.set().ends.with(4, 2n) }),
      /each window .* once, with its end/,
    ],
    ["has a window twice", (table) => ({ features: table.set().features.with(9, 8) }), /each window .* once/],
    ["has a window of a color that is not there", (table) => ({ features: table.set().features.with(9, 10) }), /once/],
  ];
  it.each(untrue)("is refused when it %s", async (_, change, message) => {
    const table = await playedTable();
    await expectRefusal(table.issue(pipeline, table.endedWindows(), change(table)), "RH001", message);
    await table.issue(pipeline);
  });

  const malformed: [string, (table: CoreTable) => Partial<ForecastSetRow>, string][] = [
    ["next_color looks further than one round", () => ({ horizons: [2, 1] }), "set_begins_with_next_color"],
    ["it has no next_color", () => ({ features: [1, 2] }), "set_begins_with_next_color"],
    ["it has a probability too few", () => ({ pPpm: [1, 2, 3] }), "set_has_a_value_for_each_forecast"],
    ["it has a horizon too many", () => ({ horizons: [1, 1, 1] }), "set_has_a_value_for_each_forecast"],
    ["it has a baseline too many", () => ({ basePpm: [1, 2, 3, 4, 5] }), "set_has_a_value_for_each_forecast"],
    ["it has too few references", () => ({ referencePpm: [1, 2, 3] }), "set_has_a_value_for_each_forecast"],
    ["it has an end too few", (table) => ({ ends: table.set().ends.slice(1) }), "set_has_a_value_for_each_forecast"],
    ["it has no hash of each forecast", () => ({ hashes: hashOf("one") }), "set_has_a_value_for_each_forecast"],
    [
      "a hash is cut",
      (table) => ({ hashes: table.set([[1, 1]]).hashes.slice(2) }),
      "set_has_a_value_for_each_forecast",
    ],
    ["a chance is above one", () => ({ pPpm: [1, 2, 3, 1_000_001] }), "set_probabilities_are_ppm"],
    ["a window looks further than 400 rounds", () => ({ horizons: [1, 401] }), "set_looks_ahead"],
  ];
  it.each(malformed)("is refused when %s", async (_, change, constraint) => {
    const table = await playedTable();
    const issued = table.issue(pipeline, [[1, 1]], change(table));
    await expect(issued).rejects.toMatchObject({ code: "23514", constraint });
    await table.issue(pipeline, [[1, 1]]);
  });

  it.each([
    ["came late", { late: true }],
    ["was found in the house's history", { source: 1 }],
    ["was imported", { source: 3, requestedAt: null, absentAt: null }],
  ])("is refused when its cutoff %s", async (_, changed) => {
    const table = await playedTable();
    const first = table.newest;
    const round = await table.play(pipeline, { absentAt: fromNow(-500), ...changed });
    table.newest = { ...round, ordinal: round.ordinal ?? 2n };
    const message = round.late || round.absentAt === null ? /to name a stored round/ : /polled on time/;
    await expectRefusal(table.issue(pipeline), "RH001", message);
    if (!round.late) return;
    table.newest = first; // a late round does not follow it
    await table.issue(pipeline);
  });

  it("is refused when its cutoff is an import that claims a request", async () => {
    const table = await playedTable();
    await table.play(pipeline, { source: 3 });
    await expectRefusal(table.issue(pipeline), "RH001", /polled on time/);
  });

  it("is refused when an on-time round follows its cutoff, and not when a late one does", async () => {
    const table = await playedTable();
    const first = table.newest;
    await table.play(pipeline, { late: true });
    await table.play(pipeline);
    table.newest = first;
    await expectRefusal(table.issue(pipeline), "RH002", /after the next round/);
  });

  it("is refused while a payload of its table is unread", async () => {
    const [table, other] = [await playedTable(), await playedTable()];
    await table.write(pipeline, { payloads: [payloadRow({ state: "unread", items: null })] });
    await expectRefusal(table.issue(pipeline), "RH002", /payload of the table is unread/);
    await other.issue(pipeline);
    await sql`update payloads set state = 'read', read_at = now() where table_id = ${table.id}`;
    await table.issue(pipeline);
  });

  it("is refused when the pause after its cutoff is over", async () => {
    const table = freshTable();
    await table.play(pipeline, { absentAt: fromNow(-60_001) });
    await expectRefusal(table.issue(pipeline), "RH002", /after the pause/);
    // again if a busy machine takes a second for it
    await eventually(async () => {
      await table.play(pipeline, { absentAt: fromNow(-59_000) });
      return table.issue(pipeline);
    });
  });

  it("is refused under an isolation that does not see what others commit", async () => {
    const table = await playedTable();
    const set = table.set();
    const rows = table.rows({ forecastSet: set, head: table.afterSet(set) });
    const isolated = pipeline.transact(passStatements(pipeline, [rows], []), "isolation level repeatable read");
    await expectRefusal(isolated, "RH001", /under READ COMMITTED/);
  });

  describe("with a window", () => {
    it("is refused while the window before is open, by ordinals and not by seqs", async () => {
      const table = await playedTable();
      await table.issue(pipeline, [[3, 3]]);
      for (let n = 0; n < 2; n += 1) {
        await table.play(pipeline, { late: true });
        await table.play(pipeline);
      }
      // seq 5 is ordinal 3: the window of three rounds after ordinal 1 has one to come
      expect([table.head.lastSeq, table.head.lastOrdinal]).toEqual([5n, 3n]);
      await expectRefusal(table.issue(pipeline, [[3, 3]]), "RH001", /found one that is open/);
      await table.issue(pipeline, [[4, 2]]);
      await table.play(pipeline);
      await table.issue(pipeline, [[3, 3]]);
    });

    it("may follow one that was voided before its end", async () => {
      const table = await playedTable();
      const first = await table.issue(pipeline, [[3, 30]]);
      const round = await table.play(pipeline, { afterGap: true });
      await expectRefusal(table.issue(pipeline, [[3, 30]]), "RH001", /found one that is open/);
      const voided = table.scores(round, [{ set: first, place: 1, reason: 1 }]);
      await table.write(pipeline, { scoreSets: [voided] });
      await table.issue(pipeline, [[3, 30]]);
    });

    it("has no end any more if its color is too rare for the next one, which only an ended one may be", async () => {
      const table = await playedTable();
      const { ends } = await table.issue(pipeline, [
        [3, 1],
        [6, 30],
      ]);
      await table.play(pipeline);
      const open = table.issue(pipeline, [], { ends: ends.with(5, 0n) });
      await expectRefusal(open, "RH001", /each window .* once, with its end/);
      await table.issue(pipeline, [], { ends: ends.with(2, 0n) });
      await table.play(pipeline);
      await table.issue(pipeline, [[3, 30]]);
    });

    it("may overlap one of another model, and not an earlier one of its own model", async () => {
      const table = await playedTable();
      await table.issue(pipeline, [[3, 30]]);
      await table.play(pipeline);
      const ends = Array.from({ length: 9 }, () => 0n).with(2, 32n);
      await table.issue(pipeline, [[3, 30]], { model: "k7@2", ends });
      await table.play(pipeline);
      const again = table.issue(pipeline, [[3, 30]], { model: table.head.model, ends: ends.with(2, 33n) });
      await expectRefusal(again, "RH001", /found one that is open/);
    });
  });

  it.each<[string, (table: CoreTable) => Promise<Partial<ForecastSetRow>>]>([
    [
      "followed",
      async (table) => {
        const { newest } = table;
        await table.play(pipeline);
        table.newest = newest;
        return {};
      },
    ],
    [
      "stored while a payload is unread",
      async (table) => {
        await table.write(pipeline, { payloads: [payloadRow({ state: "unread" })] });
        return {};
      },
    ],
    [
      "stored after the pause",
      async (table) => {
        await table.play(pipeline, { absentAt: fromNow(-60_001) });
        return {};
      },
    ],
  ])("that is %s is refused by its insert, before any commit", async (_, prepare) => {
    const table = await playedTable();
    const changed = await prepare(table);
    const set = table.set(table.endedWindows(), changed);
    let isInserted = false;
    const written = writeHeld(table.rows({ forecastSet: set, head: table.afterSet(set) }), () => {
      isInserted = true;
      return Promise.resolve();
    });
    await expectRefusal(written, "RH002", /is stored/);
    expect(isInserted).toBe(false);
  });

  describe("that is inserted in time is refused at its commit", () => {
    const hold: [string, RegExp, (table: CoreTable) => Promise<unknown>][] = [
      [
        "when another transaction commits an on-time round before",
        /after the next round/,
        (table) => insertAlone(table.rows({ rounds: [table.round()] })),
      ],
      [
        "when another transaction commits an unread payload before",
        /payload of the table is unread/,
        (table) => insertAlone(table.rows({ payloads: [payloadRow({ state: "unread" })] })),
      ],
    ];
    it.each(hold)("%s", async (_, message, holdUp) => {
      const table = await playedTable();
      const set = table.set();
      let isInserted = false;
      const written = writeHeld(table.rows({ forecastSet: set, head: table.afterSet(set) }), async () => {
        isInserted = true;
        await holdUp(table);
      });
      await expectRefusal(written, "RH002", message);
      expect(isInserted).toBe(true);
    });

    it("when the pause ends before", async () => {
      const table = freshTable();
      let isInserted = false;
      // again if a busy machine takes until the end of the pause for it
      for (let attempt = 0; attempt < 5 && !isInserted; attempt += 1) {
        await table.play(pipeline, { absentAt: fromNow(-59_700) });
        const set = table.set();
        const written = writeHeld(table.rows({ forecastSet: set, head: table.afterSet(set) }), async (tx) => {
          isInserted = true;
          await tx`select pg_sleep(0.31)`;
        });
        await expectRefusal(written, "RH002", /after the pause/);
      }
      expect(isInserted).toBe(true);
    });

    it("and not when it is held up for a moment, or a late round or a read payload is committed before", async () => {
      const table = await playedTable();
      const set = table.set();
      await writeHeld(table.rows({ forecastSet: set, head: table.afterSet(set) }), async (tx) => {
        await tx`select pg_sleep(0.05)`;
        await insertAlone(table.rows({ rounds: [table.round({ late: true })], payloads: [payloadRow()] }));
      });
      expect(await sql`select from forecast_sets where table_id = ${table.id}`).toHaveLength(1);
    });
  });
});

describe("a forecast set more than a second after its issue", () => {
  beforeAll(() => allowSetAge(database.url, "1 second"));
  afterAll(() => allowSetAge(database.url, "1 minute"));

  it("is refused by its insert", async () => {
    const table = await playedTable();
    const set = table.set(table.endedWindows(), { issuedAt: fromNow(-1_001) });
    let isInserted = false;
    const written = writeHeld(table.rows({ forecastSet: set, head: table.afterSet(set) }), () => {
      isInserted = true;
      return Promise.resolve();
    });
    await expectRefusal(written, "RH002", /more than a second/);
    expect(isInserted).toBe(false);
    // again if a busy machine takes half a second for it
    await eventually(() => table.issue(pipeline, table.endedWindows(), { issuedAt: fromNow(-500) }));
  });

  it("is refused at its commit if it was inserted before", async () => {
    const table = await playedTable();
    let isInserted = false;
    // again if a busy machine takes a second for it
    for (let attempt = 0; attempt < 5 && !isInserted; attempt += 1) {
      const set = table.set();
      const written = writeHeld(table.rows({ forecastSet: set, head: table.afterSet(set) }), async (tx) => {
        isInserted = true;
        await tx`select pg_sleep(1.01)`;
      });
      await expectRefusal(written, "RH002", /more than a second/);
    }
    expect(isInserted).toBe(true);
  });
});

/** Stores rows without their head, as a program would that locks nothing. */
async function insertAlone(rows: PassRows): Promise<void> {
  await sql.begin(async (tx) => {
    for (const statement of passStatements(tx, [rows], []).slice(1, -1)) await statement;
  });
}

describe("a score set", () => {
  /** A table with a set of two windows (1 and 3 rounds) and the round after it. */
  async function due(changed: Parameters<CoreTable["round"]>[0] = {}) {
    const table = await playedTable();
    const set = await table.issue(pipeline, [
      [1, 1],
      [3, 3],
    ]);
    const round = await table.play(pipeline, changed);
    return { table, set, round };
  }

  const store = (table: CoreTable, scores: ScoreSetRow) => table.write(pipeline, { scoreSets: [scores] });

  it("is stored when its forecasts end", async () => {
    const { table, set, round } = await due();
    await store(
      table,
      table.scores(round, [
        { set, place: 0 },
        { set, place: 1 },
      ]),
    );
    await table.play(pipeline);
    const last = await table.play(pipeline);
    await store(table, table.scores(last, [{ set, place: 2 }]));
    expect(await sql`select from scores where table_id = ${table.id} and status = 'scored'`).toHaveLength(3);
    expect(await sql`select from open_forecasts where table_id = ${table.id}`).toHaveLength(0);
  });

  const untrue: [string, (set: ForecastSetRow) => Partial<ScoreSetRow>, RegExp][] = [
    ["of a set that is not stored", () => ({ cutoffSeqs: [7n] }), /expected a forecast of a stored set/],
    [
      "of a forecast that its set does not have",
      (set) => ({ forecastSeqs: [set.firstSeq + 3n] }),
      /a forecast of a stored set/,
    ],
    ["of another feature", () => ({ features: [2] }), /a forecast of a stored set/],
    ["by a round that is not stored", () => ({ settledSeq: 9n }), /expected a stored round/],
    ["with another ordinal of its round", () => ({ settledOrdinal: 3n }), /expected a stored round/],
    ["with another request of its round", () => ({ targetRequestedAt: fromNow(9) }), /expected a stored round/],
    ["that is scored without an outcome", () => ({ outcomes: [null] }), /an outcome when scored/],
    ["that is void without a reason", () => ({ statuses: [1], outcomes: [null] }), /a reason when void/],
  ];
  it.each(untrue)("is refused %s", async (_, change, message) => {
    const { table, set, round } = await due();
    const one = [{ set, place: 0 }];
    await expectRefusal(store(table, table.scores(round, one, change(set))), "RH001", message);
    await store(table, table.scores(round, one));
  });

  it("is refused at a round at which its forecast does not end", async () => {
    const { table, set, round } = await due();
    const early = store(table, table.scores(round, [{ set, place: 2 }]));
    await expectRefusal(early, "RH001", /the round at which the forecast ends/);
    const next = await table.play(pipeline);
    const late = store(table, table.scores(next, [{ set, place: 0 }]));
    await expectRefusal(late, "RH001", /the round at which the forecast ends/);
    const outside = store(table, table.scores(next, [{ set, place: 0, reason: 1 }]));
    await expectRefusal(outside, "RH001", /a round of the forecast's span/);
  });

  it("is refused when it settles a forecast by its own cutoff", async () => {
    const { table, set } = await due();
    const [cutoff] = await sql<{ requested_at: string }[]>`
      select utc_text(requested_at) as requested_at
      from rounds
      where table_id = ${table.id}
        and seq = 1`;
    const round = table.round({ seq: 1n, ordinal: 1n, requestedAt: cutoff?.requested_at ?? null });
    const settled = store(table, table.scores(round, [{ set, place: 0, reason: 1 }]));
    await expectRefusal(settled, "RH001", /a round after the cutoff/);
  });

  it("is refused when its round was requested before the issue, and may be void then", async () => {
    const { table, set, round } = await due({ requestedAt: fromNow(-5_000), absentAt: null });
    await expectRefusal(store(table, table.scores(round, [{ set, place: 0 }])), "RH001", /requested after the issue/);
    await store(table, table.scores(round, [{ set, place: 0, reason: 2 }]));
  });

  it("is refused when its round has no request", async () => {
    const { table, set, round } = await due({ requestedAt: null, absentAt: null, source: 3 });
    await expectRefusal(store(table, table.scores(round, [{ set, place: 0 }])), "RH001", /requested after the issue/);
  });

  it.each([
    ["a second time by the same round", 0, 0],
    ["as void after it was scored", 0, 1],
  ])("is refused %s", async (_, first, second) => {
    const { table, set, round } = await due();
    await store(table, table.scores(round, [{ set, place: 0, reason: first }]));
    const again = store(table, table.scores(round, [{ set, place: 0, reason: second }]));
    await expect(again).rejects.toMatchObject({ code: "23505", constraint: "score_sets_pkey" });
  });

  it("is refused when a forecast of it was settled by another round", async () => {
    const { table, set, round } = await due();
    await store(table, table.scores(round, [{ set, place: 2, reason: 1 }]));
    const next = await table.play(pipeline);
    const voided = store(table, table.scores(next, [{ set, place: 2, reason: 3 }]));
    await expectRefusal(voided, "RH001", /a forecast that is not settled/);
    const last = await table.play(pipeline);
    await expectRefusal(
      store(table, table.scores(last, [{ set, place: 2 }])),
      "RH001",
      /a forecast that is not settled/,
    );
  });

  it("is refused when it voids a window that was scored", async () => {
    const table = await playedTable();
    const set = await table.issue(pipeline, [[3, 3]]);
    await table.play(pipeline);
    await table.play(pipeline);
    const end = await table.play(pipeline);
    await store(table, table.scores(end, [{ set, place: 1 }]));
    const late = await table.play(pipeline, { late: true });
    const voided = store(table, table.scores(late, [{ set, place: 1, reason: 2 }]));
    await expectRefusal(voided, "RH001", /a forecast that is not settled/);
  });

  it("is refused when it has a forecast twice", async () => {
    const { table, set, round } = await due();
    const twice = store(
      table,
      table.scores(round, [
        { set, place: 0 },
        { set, place: 0 },
      ]),
    );
    await expectRefusal(twice, "RH001", /expected each forecast once/);
  });

  it.each([
    ["a status too few", { statuses: [] }],
    ["a hash too few", { hashes: "" }],
    ["an outcome too many", { outcomes: [0, 0] }],
  ])("is refused when it has %s", async (_, changed) => {
    const { table, set, round } = await due();
    const stored = store(table, table.scores(round, [{ set, place: 0 }], changed));
    await expect(stored).rejects.toMatchObject({
      code: "23514",
      constraint: "score_set_has_a_value_for_each_forecast",
    });
  });
});

describe("a revision of a score", () => {
  const revise = (table: CoreTable, rev: number, { forecastSeq = 1n, cutoffSeq = 1n, feature = 0 } = {}) => sql`
    insert into score_revisions (
      table_id, forecast_seq, rev, cutoff_seq, feature, settled_seq, status, reason, scored_at, prev_hash, hash
    )
    values (
      ${table.id}, ${forecastSeq}, ${rev}, ${cutoffSeq}, ${feature}, 2, 1, 3, now(), ${Buffer.alloc(32)},
      ${Buffer.alloc(32)}
    )`;
  const refused = /expected a settled forecast and the revision before/;

  it("counts up from the score, one by one", async () => {
    const table = await playedTable();
    const set = await table.issue(pipeline, [[1, 1]]);
    await expectRefusal(revise(table, 2), "RH001", refused);
    const round = await table.play(pipeline);
    await table.write(pipeline, { scoreSets: [table.scores(round, [{ set, place: 0 }])] });
    await expectRefusal(revise(table, 3), "RH001", refused);
    await expect(revise(table, 1)).rejects.toMatchObject({ constraint: "revision_counts_from_two" });
    await revise(table, 2);
    await expectRefusal(revise(table, 4), "RH001", refused);
    await expect(revise(table, 2)).rejects.toMatchObject({ constraint: "score_revisions_pkey" });
    await revise(table, 3);
  });

  it("is refused of a forecast that is not stored or not settled", async () => {
    const table = await playedTable();
    const set = await table.issue(pipeline, [[1, 1]]);
    const round = await table.play(pipeline);
    await table.write(pipeline, { scoreSets: [table.scores(round, [{ set, place: 0 }])] });
    await expectRefusal(revise(table, 2, { forecastSeq: 2n, feature: 1 }), "RH001", refused);
    await expectRefusal(revise(table, 2, { forecastSeq: 9n }), "RH001", refused);
    await expectRefusal(revise(table, 2, { feature: 1 }), "RH001", refused);
    await expectRefusal(revise(table, 2, { cutoffSeq: 2n }), "RH001", refused);
    await revise(table, 2);
  });
});

describe("a head", () => {
  it.each([
    ["its version stays", "version = version", "RH001", /to move with what it counts/],
    ["its version skips one", "version = version + 2", "RH009", /expected version/],
    ["its version goes back", "version = version - 1", "RH009", /expected version/],
    ["its seq goes back", "version = version + 1, last_seq = last_seq - 1", "RH001", /to move forward/],
    ["its ordinal goes back", "version = version + 1, last_ordinal = last_ordinal - 1", "RH001", /to move forward/],
    ["its forecasts go back", "version = version + 1, forecast_seq = forecast_seq - 1", "RH001", /to move forward/],
  ])("is refused when %s", async (_, change, code, message) => {
    const table = await playedTable(2);
    await table.issue(pipeline);
    await table.play(pipeline, { late: true });
    const update = sql.unsafe(
      `update table_heads set ${change}, newest_seq = null, newest_round_id = null where table_id = ${table.id}`,
    );
    await expectRefusal(update, code, message);
    await sql.unsafe(`update table_heads set responded_at = clock_timestamp() where table_id = ${table.id}`);
    await sql.unsafe(`update table_heads set version = version + 1 where table_id = ${table.id}`);
  });

  it.each(["has_ended = not has_ended", "first_model = 'another'"])(
    "keeps its version only without %s",
    async (change) => {
      const table = await playedTable(1);
      const update = sql.unsafe(`update table_heads set ${change} where table_id = ${table.id}`);
      await expectRefusal(update, "RH001", /to move with what it counts/);
    },
  );

  it("that moved refuses a pass that began before, with everything it brings", async () => {
    const table = await playedTable();
    const before = table.rows({ payloads: [payloadRow()] });
    await table.play(pipeline);
    const written = pipeline.transact(passStatements(pipeline, [before], []));
    const error: unknown = await written.catch((thrown: unknown) => thrown);
    expect(refusalOf(error)).toBe("moved");
    expect(error).toMatchObject({ code: "RH009", message: expect.stringContaining("read them again") as string });
    expect(await sql`select from payloads where table_id = ${table.id}`).toHaveLength(0);
  });
});
