import { describe, expect, it } from "vitest";
import { listAudits } from "../../src/forecasts/readings/audit-store.ts";
import { sparkline } from "../../src/cli/data/sparkline.ts";
import { generatedRounds } from "../forecasts/streams.ts";
import { createWorld, type World } from "../forecasts/world.ts";
import { timesFrom } from "../support/passes.ts";
import { roundhouse } from "./world.ts";

const run = (world: World, ...args: string[]) =>
  roundhouse(["audit", ...args], { env: { DATABASE_URL: world.url, REDIS_URL: "redis://127.0.0.1:9/0" } });

describe("audit", () => {
  it("shows what the rounds of each table prove of its house, for programs and for people", async () => {
    const world = await createWorld({ ownDatabase: true, tables: [{}, { house_edge: undefined }] });
    const rounds = generatedRounds(400).map(({ hundredths }, index) => ({
      hundredths: index < 300 ? 105 + (index % 3) : hundredths,
      ...(index === 399 ? { roundId: "2000", proofHash: "ab".repeat(32), verified: true as const } : {}),
    }));
    await world.play(rounds.slice(0, 200), world.tableId, { times: timesFrom(Date.now() - 7_200_000, 1_000) });
    await world.sql`delete from published_readings`; // as if it had been published ten seconds ago
    await world.play(rounds.slice(200));

    const { code, stdout } = await run(world, "--json");
    expect(code).toBe(0);
    const [audit, undeclared] = JSON.parse(stdout) as { edge: unknown; hours: { hour: string }[] }[];
    expect(audit).toMatchObject({
      table: world.tableName,
      simulated: false,
      rounds: 400,
      edge: { declared: 0.01, tested_rounds: 400, rejected: true, rejected_hour: audit?.hours[0]?.hour },
      tables: 2,
      proofs: { verified: 1, share: 1 / 400, failed: 0 },
      missing: 600,
      gaps: 1,
      conflicts: 0,
    });
    expect(audit?.hours).toHaveLength(2);
    expect(undeclared).toMatchObject({ rounds: 0, edge: { declared: null, ln_e: null, rejected: null }, hours: [] });

    const text = (await run(world, "--table", world.tableName)).stdout;
    expect(text).toMatch(/not kept, since \d{4}-\d\d-\d\d \d\d:00:00Z/);
    expect(text).toMatch(/[▁▂▃▄▅▆▇█]{2}/);
    expect(text).not.toContain("no edge declared");
  });

  it("rejects an edge only from 20 times the number of tables on, from the first hour that reached it", async () => {
    const world = await createWorld({ ownDatabase: true, tables: [{}, {}, {}] });
    await world.play([150, 250]);
    await world.sql`
      insert into house_audits (table_id, hour, seq, rounds, tested, edge_ppm, ln_e, ln_e_max, proven, missing, gaps)
      select table_id, hour + at * interval '1 hour', seq, rounds, tested, edge_ppm, 0, round(1e6 * ln(e)), proven, missing, gaps
      from house_audits
      cross join (values (1, 21), (2, 59), (3, 61), (4, 61)) as more (at, e)`;
    const auditOf = async () => (JSON.parse((await run(world, "--json")).stdout) as { hours: { hour: string }[] }[])[0];
    const text = async () => (await run(world, "--table", world.tableName)).stdout;
    const rejected = await auditOf();
    expect(rejected).toMatchObject({ edge: { rejected: true, rejected_hour: rejected?.hours[3]?.hour }, tables: 3 });
    expect(await text()).toContain("not kept, since");
    await world.sql`delete from house_audits where ln_e_max > 1e6 * ln(60)`;
    expect(await auditOf()).toMatchObject({ edge: { rejected: false, rejected_hour: null } });
    expect(await text()).toMatch(/evidence against .*one table in 20 reaches 20.*3 tables.*from 60 on/s);
    await world.sql`delete from house_audits where ln_e_max > 1e6 * ln(20)`;
    expect(await text()).toContain("fits");
  });

  it("reads the newest hours of a table whose edge was never rejected, not its whole history", async () => {
    const world = await createWorld({ ownDatabase: true });
    await world.play([150, 250]);
    await world.sql`
      insert into house_audits (table_id, hour, seq, rounds, tested, edge_ppm, ln_e, ln_e_max, proven, missing, gaps)
      select table_id, hour - at * interval '1 hour', seq, rounds, tested, edge_ppm, 0, ln_e_max, proven, missing, gaps
      from house_audits
      cross join generate_series(1, 10000) as earlier (at)`;
    await world.sql`analyze house_audits`;
    const read = await world.sql.begin(async (tx) => {
      expect(await listAudits(tx, { hours: 3 })).toMatchObject([{ rejectedHour: null, hours: [{}, {}, {}] }]);
      const [row] = await tx<{ rows: number }[]>`
        select (seq_tup_read + idx_tup_fetch)::integer as rows
        from pg_stat_xact_user_tables
        where relname = 'house_audits'`;
      return row?.rows;
    });
    expect(read).toBeLessThan(20);
  });
});

describe("a sparkline", () => {
  it("goes from the least to the greatest value", () => {
    expect(sparkline([0, 1, 2, 7])).toBe("▁▂▃█");
    expect(sparkline([3, 3])).toBe("▁▁");
    expect(sparkline([])).toBe("");
  });

  it("keeps the newest value if there are too many", () => {
    expect(
      sparkline(
        Array.from({ length: 100 }, (_, n) => n),
        4,
      ),
    ).toBe("▁▃▆█");
  });
});
