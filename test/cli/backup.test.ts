import { createHash } from "node:crypto";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { appendAudit } from "../../src/audit/store.ts";
import { checkBackup } from "../../src/backup/read.ts";
import { restoreRows } from "../../src/backup/restore.ts";
import { listTables } from "../../src/backup/store.ts";
import { writeBackup } from "../../src/backup/write.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { migrate } from "../../src/db/migrate.ts";
import { verify } from "../../src/verify/verify.ts";
import { giveAddress } from "../../src/topups/usdt/address-store.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import type { PassState } from "../../src/pass/compute/state.ts";
import { fund } from "../support/fund.ts";
import { createDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { givePasses, timesFrom } from "../support/passes.ts";
import { makeFolder, roundhouse, startRoundhouse } from "./world.ts";

const VERSION = "1.2.3";
const NO_SIGNAL = new AbortController().signal;
const NO_REDIS = { REDIS_URL: "redis://127.0.0.1:9/0" };
/** What a command adds: that it backed up or restored. */
const TOLD = ["audit_log", "audit_head", "backups", "restores"];

let world: { sql: Sql; url: string };
/** The state of the table that new rounds come into. */
let newest: PassState;
const cleanUps: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  const database = await createDatabase();
  const sql = connect(database.url, { name: "test", max: 4 });
  world = { sql, url: database.url };
  cleanUps.push(() => sql.end(), database.drop);
  await applyHouses(sql, [
    houseEntry({ tables: [tableEntry({ pause_ms: 600_000 }), tableEntry({ market: "other", round_ids: "opaque" })] }),
  ]);
  const multipliers = Array.from({ length: 150 }, (_, n) => [150, 187, 1_200, 230, 101][n % 5] ?? 0);
  await givePasses(sql, { id: 2 }, multipliers, { times: timesFrom(Date.now() - 26 * 3_600_000, 20_000) });
  newest = await givePasses(sql, { id: 1 }, multipliers.slice(0, 30));
  const made = await createKey(sql, { email: "ann@example.com", plan: "Pro" }).catch(String);
  expect(made).toMatchObject({ ok: false }); // the account comes first
  const [account] = await sql<{ id: bigint }[]>`
    insert into accounts (email, verified_at) values ('ann@example.com', now()) returning id`;
  await createKey(sql, { email: "ann@example.com", plan: "Pro", name: "tab\tline\nback\\slash \\. é" });
  await sql.begin((tx) => fund(tx, account?.id ?? 0n, 25_000_000n));
  await sql.begin((tx) =>
    appendAudit(tx, {
      surface: "cli",
      actor: "test",
      role: null,
      action: "house.pause",
      target: "house x",
      before: null,
      after: { text: "a\nb" },
      reason: null,
      requestId: null,
      address: null,
    }),
  );
});
afterAll(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

async function nextRound(sql: Sql): Promise<void> {
  newest = await givePasses(sql, { id: 1 }, [321], { from: newest });
}

/** A database with nothing in it, not even a schema. */
async function emptyDatabase(): Promise<string> {
  const url = new URL(world.url);
  url.pathname = `${url.pathname}_${cleanUps.length}_${inject("templateDatabase").slice(-8)}`;
  const name = url.pathname.slice(1);
  await world.sql`create database ${world.sql(name)}`;
  cleanUps.unshift(async () => {
    await world.sql`drop database if exists ${world.sql(name)} with (force)`;
  });
  return url.href;
}

async function within<Result>(url: string, work: (sql: Sql) => Promise<Result>): Promise<Result> {
  const sql = connect(url, { name: "test", max: 2, use: "bulk" });
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}

/** Runs a statement that takes a lock, and returns how to release it. */
async function hold(url: string, statement: string): Promise<() => Promise<void>> {
  const sql = connect(url, { name: "test", max: 1, use: "bulk" });
  const [held, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const ended = sql.begin(async (tx) => {
    await tx.unsafe(statement);
    held.resolve();
    await over.promise;
  });
  await Promise.race([held.promise, ended]);
  return async () => {
    over.resolve();
    await ended;
    await sql.end();
  };
}

/** Every table's rows, as a hash. */
async function contents(sql: Sql): Promise<Record<string, string>> {
  const tables = (await listTables(sql)).filter(({ name }) => !TOLD.includes(name));
  const found: Record<string, string> = {};
  for (const { name } of tables) {
    const [row] = await sql.unsafe<{ text: string }[]>(
      `select count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' order by t::text)), '') as text from ${name} t`,
    );
    found[name] = row?.text ?? "";
  }
  return found;
}

/** The id and the index of the USDT address of a new account. */
async function newAccount(sql: Sql): Promise<{ id: bigint; index: number }> {
  const [account] = await sql<{ id: bigint }[]>`
    insert into accounts (email) values (${`${crypto.randomUUID()}@example.com`}) returning id`;
  const { id } = account!;
  const derive = (index: number) => `0x${String(index).padStart(40, "0")}`;
  return { id, index: (await giveAddress(sql, id, { xpubFingerprint: "test", derive }))!.index };
}

const ROUNDS = "select count(*)::integer as n from rounds";

describe("a backup", () => {
  test("is restored completely, verified, and continues from there; used databases are refused", async () => {
    const folder = await makeFolder();
    const made = await roundhouse(["backup", "--to", folder, "--json"], {
      env: { DATABASE_URL: world.url, ...NO_REDIS },
    });
    expect(made).toMatchObject({ code: 0, stderr: "" });
    const facts = JSON.parse(made.stdout) as { file: string; bytes: number; rows: number };
    expect(await readdir(folder)).toEqual([facts.file.slice(folder.length + 1)]);
    const { mode, size } = await stat(facts.file);
    expect([mode & 0o777, size]).toEqual([0o600, facts.bytes]);

    const url = await emptyDatabase();
    const restored = await roundhouse(["restore", "--from", facts.file, "--into", url, "--json"]);
    expect(restored).toMatchObject({ code: 0 });
    expect(JSON.parse(restored.stdout)).toMatchObject({
      ok: true,
      rows: facts.rows,
      verify: {
        figures: { ok: true, first_failure: null },
        audit: { entries: 2, failure: null },
        ledger: { ok: true },
      },
    });
    await within(url, async (sql) => {
      expect(await contents(sql)).toEqual(await contents(world.sql));
      expect(await sql`select from pg_trigger where tgenabled = 'D'`).toHaveLength(0);
      // sequences go on, and what guards the rows does so again
      const [account] = await sql<
        { id: bigint }[]
      >`insert into accounts (email) values ('bob@example.com') returning id`;
      expect(await sql.begin((tx) => fund(tx, account?.id ?? 0n, 1_000_000n))).toMatchObject({
        ok: true,
      });
      await expect(sql`delete from ledger_entries`).rejects.toThrow("only ever added to");
    });
    const again = await roundhouse(["restore", "--from", facts.file, "--into", url]);
    expect(again.code).toBe(2);
    expect(again.stderr).toContain("is not empty: the table public.houses has rows");
  });

  test("is restored so that no account and no USDT address is given out again that was given out after it", async () => {
    const { sql } = world;
    await newAccount(sql);
    const file = join(await makeFolder(), "b.sql.gz");
    await writeBackup(sql, file, { version: VERSION, signal: NO_SIGNAL, progress: () => undefined });
    const lost = [await newAccount(sql), await newAccount(sql)];

    const url = await emptyDatabase();
    await migrate(url);
    const { header, end } = await checkBackup(file, () => undefined);
    await within(url, async (restored) => {
      await restoreRows(restored, file, { header, rows: end.rows, signal: NO_SIGNAL, progress: () => undefined });
      expect([await newAccount(restored), await newAccount(restored)]).toEqual([
        { id: lost[0]!.id + 1_000n, index: lost[0]!.index + 19 },
        { id: lost[1]!.id + 1_000n, index: lost[1]!.index + 19 },
      ]);
      await restored`select skip_lost_identifiers(addresses => 200, accounts => 5000)`;
      expect(await newAccount(restored)).toEqual({ id: lost[1]!.id + 6_001n, index: lost[1]!.index + 220 });
    });
  });

  test("of a restored database is restored with the number of addresses that a wallet must search", async () => {
    const { sql } = world;
    const [unfunded, funded] = [await newAccount(sql), await newAccount(sql)];
    for (const [{ id }, state] of [
      [funded, "below_min"],
      [await newAccount(sql), "orphaned"],
    ] as const) {
      const hash = `0x${String(id).padStart(64, "0")}`;
      await sql`
        insert into chain_deposits (
          chain_id, tx_hash, position, account_id, token, sender, units, micros, rest_units, block_number, block_hash,
          log_index, state
        )
        values (
          1, ${hash}, 0, ${id}, '0x1', ${`0x${"1".repeat(40)}`}, 1, 1, 0, 1, ${hash}, 0, ${state}
        )`;
    }
    const restore = async (from: string) => {
      const file = join(await makeFolder(), "b.sql.gz");
      await within(from, (source) =>
        writeBackup(source, file, { version: VERSION, signal: NO_SIGNAL, progress: () => undefined }),
      );
      const url = await emptyDatabase();
      return { url, ...(await roundhouse(["restore", "--from", file, "--into", url, "--no-verify", "--json"])) };
    };
    const first = await restore(world.url);
    expect(JSON.parse(first.stdout)).toMatchObject({ wallet_gap: 21 });
    expect(first.stderr).toContain("21 addresses beyond the newest one with a deposit");
    const second = await restore(first.url);
    expect(JSON.parse(second.stdout)).toMatchObject({ wallet_gap: 40 });
    await within(second.url, async (restored) => {
      expect((await newAccount(restored)).index).toBe(unfunded.index + 1 + 40);
    });
  });

  test("leaves out what is none of ours, names it, and is restored", async () => {
    const url = await emptyDatabase();
    await migrate(url);
    await within(url, async (sql) => {
      await applyHouses(sql, [houseEntry({ tables: [tableEntry()] })]);
      await givePasses(sql, { id: 1 }, [150, 187, 1_200]);
      await sql.unsafe(`
        create table notes (id serial primary key, account bigint references accounts (id));
        create sequence auth.tickets;
        alter table rounds add column "note, in brief" text default E'a\\tb\\nc', add column at serial`);
    });
    const env = { DATABASE_URL: url, ...NO_REDIS };
    const made = await roundhouse(["backup", "--to", await makeFolder(), "--json"], { env });
    expect(made.stderr).toBe("left out, since they are not of this schema: auth.tickets, notes, notes_id_seq\n");
    const { file, left_out: leftOut } = JSON.parse(made.stdout) as { file: string; left_out: string[] };
    expect(leftOut).toEqual(["auth.tickets", "notes", "notes_id_seq"]);

    const target = await emptyDatabase();
    const restored = await roundhouse(["restore", "--from", file, "--into", target, "--json"]);
    expect(restored).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(
        'left out, since they are not of this schema: "note, in brief" of rounds, at of rounds',
      ) as string,
    });
    expect(JSON.parse(restored.stdout)).toMatchObject({
      left_out: ['"note, in brief" of rounds', "at of rounds", "public.rounds_at_seq"],
      verify: { figures: { ok: true } },
    });
    await within(target, async (sql) => {
      expect(await sql`select hundredths::integer from rounds order by seq`).toEqual([
        { hundredths: 150 },
        { hundredths: 187 },
        { hundredths: 1_200 },
      ]);
    });
  });

  test("is of one moment while others write, and contains nothing later", async () => {
    const file = join(await makeFolder(), "b.sql.gz");
    const [before] = await world.sql.unsafe<{ n: number }[]>(ROUNDS);
    const writing: Promise<void>[] = [];
    await writeBackup(world.sql, file, {
      version: VERSION,
      signal: NO_SIGNAL,
      progress: () => void (writing.length > 0 || writing.push(nextRound(world.sql))),
    });
    await Promise.all(writing);
    expect(await world.sql.unsafe(ROUNDS)).toEqual([{ n: (before?.n ?? 0) + 1 }]);

    const url = await emptyDatabase();
    await migrate(url);
    const { header, end } = await checkBackup(file, () => undefined);
    await within(url, async (sql) => {
      const stopping = new AbortController();
      const stopped = restoreRows(sql, file, {
        header,
        rows: end.rows,
        signal: stopping.signal,
        progress: (table) => table === "rounds" && stopping.abort(new Error("stopped")),
      });
      await expect(stopped).rejects.toThrow("stopped");
      expect(await sql`select from houses`).toHaveLength(0);
      await restoreRows(sql, file, { header, rows: end.rows, signal: NO_SIGNAL, progress: () => undefined });
      expect(await sql.unsafe(ROUNDS)).toEqual([before]);
      expect(await verify(sql)).toMatchObject({ ok: true });
    });
  });

  test("that is damaged or cut off is refused before anything is written", async () => {
    const folder = await makeFolder();
    const file = join(folder, "b.sql.gz");
    await writeBackup(world.sql, file, { version: VERSION, signal: NO_SIGNAL, progress: () => undefined });
    const whole = await readFile(file);
    const text = gunzipSync(whole);
    const changed = Buffer.from(text);
    const at = text.indexOf("ann@example.com");
    changed.write("bob", at);
    const cases: [string, Buffer, string][] = [
      ["one letter", gzipSync(changed), "expected the SHA-256"],
      ["a row less", gzipSync(Buffer.from(text.toString().replace(/\n1\t[^\n]*\n/, "\n"))), "rows of a table"],
      ["its end", whole.subarray(0, -2_000), "unexpected end of file"],
      ["its last line", gzipSync(text.subarray(0, text.lastIndexOf("-- end"))), "it ends before its last line"],
      [
        "a bit",
        Buffer.concat([whole.subarray(0, 5_000), Buffer.from([255 ^ (whole[5_000] ?? 0)]), whole.subarray(5_001)]),
        "",
      ],
      ["all of it", Buffer.from("hello"), "incorrect header check"],
    ];
    for (const [what, bytes, why] of cases) {
      const damaged = join(folder, "damaged.sql.gz");
      await writeFile(damaged, bytes);
      await expect(
        checkBackup(damaged, () => undefined),
        what,
      ).rejects.toThrow(new RegExp(`damaged.sql.gz cannot be restored, .*${why}`));
    }
    const url = await emptyDatabase();
    const refused = await roundhouse(["restore", "--from", join(folder, "damaged.sql.gz"), "--into", url]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("it is damaged, cut off or no backup");
    expect(await within(url, (sql) => sql`select from pg_tables where schemaname = 'public'`)).toHaveLength(0);
  });

  test("that was made to run something else is refused, though its hash is right", async () => {
    const folder = await makeFolder();
    const file = join(folder, "b.sql.gz");
    await writeBackup(world.sql, file, { version: VERSION, signal: NO_SIGNAL, progress: () => undefined });
    const text = gunzipSync(await readFile(file)).toString();
    const ran = join(folder, "ran");
    const [body = "", end = ""] = text.split("-- end ");
    const hostile = body.replace(
      /\ncopy (\S+) \(([^,)]+)/,
      (_, name, column) => `\ncopy ${name} (${column}) from program 'touch ${ran}'; copy ${name} (${column}`,
    );
    expect(hostile).not.toBe(body);
    const told = { ...(JSON.parse(end) as object), sha256: createHash("sha256").update(hostile).digest("hex") };
    await writeFile(file, gzipSync(`${hostile}-- end ${JSON.stringify(told)}\n`));
    const refused = await roundhouse(["restore", "--from", file, "--into", await emptyDatabase()]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/the schema has the column \w+ of \S+, the backup has not/);
    await expect(stat(ran)).rejects.toThrow("ENOENT");
  });

  test("that is killed leaves no file under its name, a restore that is killed nothing in the database", async () => {
    const folder = await makeFolder();
    const file = join(folder, "b.sql.gz");
    const place = { env: { DATABASE_URL: world.url, ...NO_REDIS } };
    await world.sql.begin(async (tx) => {
      await tx`lock table score_sets in access exclusive mode`;
      const killed = startRoundhouse(["backup", "--to", file], place);
      await eventually(async () => (await readdir(folder)).length > 0 || undefined);
      killed.kill("SIGKILL");
      await killed.ended;
    });
    expect(await readdir(folder)).toEqual([expect.stringMatching(/^b\.sql\.gz\.\d+\.partial$/)]);

    await writeBackup(world.sql, file, { version: VERSION, signal: NO_SIGNAL, progress: () => undefined });
    const url = await emptyDatabase();
    await migrate(url);
    await within(url, async (sql) => {
      await sql.begin(async (tx) => {
        await tx`lock table score_sets in access share mode`;
        const killed = startRoundhouse(["restore", "--from", file, "--into", url]);
        await eventually(async () => {
          const waiting = await sql`
            select from pg_stat_activity
            where datname = current_database() and application_name = 'roundhouse restore' and wait_event_type = 'Lock'`;
          return waiting.length > 0 || undefined;
        });
        killed.kill("SIGKILL");
        await killed.ended;
      });
      expect(await sql`select from houses`).toHaveLength(0);
      const { header, end } = await checkBackup(file, () => undefined);
      await restoreRows(sql, file, { header, rows: end.rows, signal: NO_SIGNAL, progress: () => undefined });
      expect(await sql`select from houses`).toHaveLength(1);
    });
  });

  test("whose restore is stopped while it verifies is kept, and the checks to run are named", async () => {
    const file = join(await makeFolder(), "b.sql.gz");
    await writeBackup(world.sql, file, { version: VERSION, signal: NO_SIGNAL, progress: () => undefined });
    const url = await emptyDatabase();
    await migrate(url);
    await within(url, async (sql) => {
      const restoreWaits = (on: string) =>
        eventually(async () => {
          const waiting = await sql`
            select from pg_stat_activity
            where datname = current_database() and query not like '%pg_stat_activity%' and wait_event = ${on}`;
          return waiting.length > 0 || undefined;
        });
      // each lock holds the restore up until the next one is taken: at its rows, at its last migration, at its checks
      const rows = await hold(url, "lock table score_sets in access share mode");
      const restore = startRoundhouse(["restore", "--from", file, "--into", url]);
      await restoreWaits("relation");
      const migration = await hold(url, "select pg_advisory_xact_lock(x'72680001'::bigint)");
      await rows();
      await restoreWaits("advisory");
      const checks = await hold(url, "lock table rounds in access exclusive mode");
      await migration();
      await restoreWaits("relation");
      restore.kill("SIGINT");
      expect(await restore.ended).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(
          "the checks were stopped; all rows are restored: run `roundhouse verify` and `roundhouse ledger check` on this database",
        ) as string,
      });
      await checks();
      expect(await sql`select from houses`).toHaveLength(1);
    });
  });

  test("is restored into a database that is named, on the server of DATABASE_URL, and made if it is missing", async () => {
    const file = join(await makeFolder(), "one.sql.gz");
    const env = { DATABASE_URL: world.url, ...NO_REDIS };
    expect(await roundhouse(["backup", "--to", file], { env })).toMatchObject({ code: 0 });
    const name = `restored_${inject("templateDatabase").slice(-8)}`;
    cleanUps.unshift(async () => {
      await world.sql`drop database if exists ${world.sql(name)} with (force)`;
    });
    const restored = await roundhouse(["restore", "--from", file, "--into", name], { env });
    expect([restored.code, restored.stderr]).toEqual([0, expect.stringContaining(`made the database ${name}`)]);
    const url = Object.assign(new URL(world.url), { pathname: name }).href;
    const [there] = await within(url, (sql) => sql.unsafe<{ n: number }[]>(ROUNDS));
    const [ours] = await world.sql.unsafe<{ n: number }[]>(ROUNDS);
    expect(there?.n).toBe(ours?.n);

    const wrong = await roundhouse(["restore", "--from", file, "--into", "No Name"], { env });
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringContaining("expected a URL or the name of a database"),
    ]);
    const nowhere = await startRoundhouse(["restore", "--from", file, "--into", name], { cwd: await makeFolder() })
      .ended;
    expect([nowhere.code, nowhere.stderr]).toEqual([2, expect.stringContaining("needs DATABASE_URL")]);
  });

  test("is restored into a private database once, and then states how to get an empty one", async () => {
    const folder = await makeFolder();
    const file = join(folder, "b.sql.gz");
    await writeBackup(world.sql, file, { version: VERSION, signal: NO_SIGNAL, progress: () => undefined });
    const restore = () =>
      roundhouse(["restore", "--from", file, "--no-verify"], { env: { DATA_DIR: join(folder, "data") } });
    expect(await restore()).toMatchObject({ code: 0 });
    const again = await restore();
    expect([again.code, again.stderr]).toEqual([
      2,
      expect.stringContaining(
        `set DATA_DIR to an empty folder, copy auth-secret and log/ of ${join(folder, "data")} into it, and restore again`,
      ),
    ]);
    expect(again.stderr).not.toContain("create database");
  });

  test("is written into a folder, which is created, if the path has no .gz", async () => {
    const folder = await makeFolder();
    for (const to of [join(folder, "nightly"), join(folder, "nightly"), `${join(folder, "old.gz")}/`]) {
      const made = await roundhouse(["backup", "--to", to, "--json"], {
        env: { DATABASE_URL: world.url, ...NO_REDIS },
      });
      expect(made).toMatchObject({ code: 0, stderr: "" });
      const { file } = JSON.parse(made.stdout) as { file: string };
      expect([dirname(file), (await stat(file)).isFile()]).toEqual([resolve(to), true]);
    }
  });
});
