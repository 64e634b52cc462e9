import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Sql } from "../../../src/db/client.ts";
import { issueForHouse } from "../../../src/forecasts/issue/issue.ts";
import { publishHouse } from "../../../src/forecasts/accuracy/publish.ts";
import { scoreHouse } from "../../../src/forecasts/score/score.ts";
import { verify } from "../../../src/forecasts/verify/verify.ts";
import { createWorld, type Play, type World } from "../world.ts";

describe("whatever happens in whatever order", () => {
  test("verify stays at peace, with work that is cut off before its commit and work at the same time", async () => {
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          kind: fc.constant("play" as const),
          rounds: fc.array(anyRound(), { minLength: 1, maxLength: 4 }),
        }),
      },
      { weight: 5, arbitrary: fc.record({ kind: fc.constant("issue" as const), crashAt: crash() }) },
      { weight: 4, arbitrary: fc.record({ kind: fc.constant("score" as const), crashAt: crash() }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant("publish" as const), crashAt: crash() }) },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant("conflict" as const), back: fc.integer({ min: 0, max: 5 }) }),
      },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant("together" as const) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 30 }), async (steps) => {
        const world = await createWorld({ tables: [{}, { round_ids: "opaque" }] });
        let next = 5000;
        let lastLate = 0;
        for (const [index, one] of steps.entries()) {
          switch (one.kind) {
            case "play": {
              const rounds = one.rounds.map(({ hundredths, skip, late }): Play => {
                if (late) return { hundredths, roundId: String((lastLate += 1)), late: true, source: "computed" };
                next += 1 + skip;
                return { hundredths, roundId: String(next), afterGap: skip > 0 };
              });
              for (const id of world.tableIds) await world.play(rounds, id);
              break;
            }
            case "issue":
              await cutOff(world.sql, one.crashAt, (sql) => issueForHouse(sql, world.house, run));
              break;
            case "score":
              await cutOff(world.sql, one.crashAt, (sql) => scoreHouse(sql, world.house, run.signal));
              break;
            case "publish":
              await cutOff(world.sql, one.crashAt, (sql) => publishHouse(sql, world.house, run.signal));
              break;
            case "conflict":
              await conflictWith(world, one.back);
              break;
            case "together":
              await Promise.all([world.issue(), world.score(), world.issue(), world.score(), world.publish()]);
          }
          // one table after each step, in turns, and both at the end
          const isLast = index === steps.length - 1;
          for (const tableId of isLast ? world.tableIds : world.tableIds.slice(index % 2, (index % 2) + 1)) {
            expect(await verify(world.sql, { tableId })).toMatchObject({ ok: true, first_failure: null });
          }
        }
      }),
      { numRuns: 4 },
    );
  }, 120_000);
});

const run = { signal: new AbortController().signal, committed: () => undefined };

function anyRound() {
  return fc.record({
    hundredths: fc.integer({ min: 100, max: 2000 }),
    skip: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }) }),
    late: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  });
}

function crash() {
  return fc.option(fc.integer({ min: 1, max: 3 }), { nil: null });
}

/** Runs work whose nth transaction is cut off right before its commit. */
async function cutOff(sql: Sql, crashAt: number | null, work: (sql: Sql) => Promise<unknown>): Promise<void> {
  let transactions = 0;
  const cut = new Proxy(sql, {
    get(target, name, receiver) {
      if (name !== "begin") return Reflect.get(target, name, receiver) as unknown;
      return (body: (tx: unknown) => Promise<unknown>) =>
        target.begin(async (tx) => {
          transactions += 1;
          const result = await body(tx);
          if (transactions === crashAt) throw new Error("power failure");
          return result;
        });
    },
  });
  try {
    await work(cut);
  } catch (error) {
    if (!(error instanceof Error) || error.message !== "power failure") throw error;
  }
}

async function conflictWith({ sql, tableIds }: World, back: number): Promise<void> {
  for (const tableId of tableIds) {
    const [row] = await sql<{ round_id: string }[]>`
      select round_id
      from rounds
      where table_id = ${tableId}
      order by seq desc
      limit 1
      offset ${back}`;
    if (row === undefined) continue;
    await sql`
      insert into conflicts (table_id, round_id, kept_hundredths, other_hundredths, other_raw)
      values (${tableId}, ${row.round_id}, 1, 2, '')
      on conflict do nothing`;
  }
}
