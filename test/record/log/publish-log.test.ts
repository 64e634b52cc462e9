import { parseWitnesses, type Witness } from "../../../src/config/witnesses.ts";
import { generateKeyPairSync } from "node:crypto";
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { KEY } from "../../../src/forecasts/accuracy/keys.ts";
import { addTo, decodeSums, encodeSums } from "../../../src/forecasts/accuracy/sum-vector.ts";
import { listSets } from "../../../src/forecasts/accuracy/new-facts-store.ts";
import { createModel } from "../../../src/forecasts/model/model.ts";
import { listPublished } from "../../../src/forecasts/accuracy/published-store.ts";
import { appendAudit } from "../../../src/audit/store.ts";
import { runRollingCalibration } from "../../../src/calibration/calibrate.ts";
import { requestRollingRuns } from "../../../src/calibration/runs/rolling-run-store.ts";
import { verify } from "../../../src/verify/verify.ts";
import { declareLog } from "../../../src/record/log/declare.ts";
import {
  createLog,
  findNewestCheckpoint,
  listEntries,
  listLogs,
  saveCheckpoint,
} from "../../../src/record/log/log-store.ts";
import {
  cosign,
  cosignedAt,
  parseVerifierKey,
  readCheckpoint,
  signCheckpoint,
  signerOf,
} from "../../../src/signed-note.ts";
import { keepNewestNote } from "../../../src/record/log/log-folder.ts";
import { listAccuracyMarks, noteAccuracy } from "../../../src/record/log/pending-store.ts";
import { LogRefusal, publishLog } from "../../../src/record/log/publish-log.ts";
import { findContradictedAccuracy } from "../../../src/record/log/verify-accuracy.ts";
import { proveForecast } from "../../../src/record/log/prove.ts";
import { type AccuracyStatement, entryOf, type Statement } from "../../../src/record/log/statements.ts";
import { saveTiles, tileReader } from "../../../src/record/log/tiles-store.ts";
import { leafHash } from "../../../src/record/log/tree.ts";
import { openWitness } from "../../../src/record/log/witness.ts";
import { verifierKeyText } from "../../../src/signed-note.ts";
import { generatedRounds } from "../../forecasts/streams.ts";
import { createWorld, type World, type WorldOptions } from "../../forecasts/world.ts";
import { eventually } from "../../support/eventually.ts";
import { lockWaits } from "../../support/lock-waits.ts";

const signal = new AbortController().signal;
/** The model of a table as `createWorld` makes it. */
const MODEL = createModel({ thresholds: [200, 1000], edge: 0.01 }).name;
const ROUNDS = [187, 250, 100, 1234, 145, 310, 201, 118];

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "log-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

/** A table with rounds, forecasts and scores, and the log folder of its worker. */
async function logged(options: WorldOptions = {}) {
  const world = await createWorld({ ownDatabase: true, ...options });
  const path = await folder();
  await world.play(ROUNDS, world.tableId, { atOnce: 1 });
  await world.add();
  const publish = async (witnesses: Witness[] = []) => {
    const publication = { folder: path, publicUrl: "https://crash.example", witnesses };
    const published = await publishLog(world.sql, publication, signal);
    // accuracy is stated in each hour, and all of it on each day: the next one may begin during a test
    await world.sql`update logs set accuracy_hour = 'infinity' where accuracy_hour > '-infinity'`;
    await world.sql`update log_heads set accuracy_day = 'infinity' where accuracy_day > now() - interval '2 days'`;
    return published;
  };
  return { world, path, publish };
}

/** A log that states a replaced model with the name "old", in whose hours nothing is added; all accuracy was stated today. */
async function replaced() {
  const { world, publish } = await logged();
  await tamper(
    world,
    `insert into accuracy_models select table_id, 'old', palette, first_hour from accuracy_models;
     insert into accuracy_periods select table_id, feature, 'old', 'all', sums, 1 from accuracy_hours;
     update accuracy_marks set version = 7`,
  );
  await publish();
  return {
    world,
    publish,
    /** The hits of its next color, as they were stated in order. */
    async stated() {
      const statements = (await listEntries(world.sql, 1, 0, 100)).map((entry) => JSON.parse(entry) as Statement);
      const rows = statements.flatMap((one) => (one.kind === "accuracy" ? one.rows : []));
      return rows.flatMap(({ model, feature, hits }) => (model === "old" && feature === "next_color" ? [hits] : []));
    },
  };
}

/** Adds three hits to the published next color of the replaced model. */
async function addHits({ sql }: World): Promise<void> {
  const [row] = await sql<{ sums: Buffer }[]>`
    select sums from accuracy_periods where model = 'old' and feature = 0`;
  const sums = decodeSums(row?.sums ?? Buffer.alloc(0));
  addTo(sums, KEY.hits, 3n);
  await sql`update accuracy_periods set sums = ${encodeSums(sums)} where model = 'old' and feature = 0`;
}

/** Lets an hour pass since accuracy was stated. */
async function hourLater({ sql }: World): Promise<void> {
  await sql`update logs set accuracy_hour = date_trunc('hour', now(), 'UTC') - interval '1 hour'`;
}

async function newestNote({ sql }: World): Promise<string> {
  const [log] = await listLogs(sql);
  const newest = log === undefined ? null : await findNewestCheckpoint(sql, log.id);
  if (newest === null) throw new Error("expected a checkpoint");
  return newest.note;
}

/** Changes rows as their owner can, past every trigger. */
async function tamper({ sql }: World, statement: string): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx.unsafe(statement);
  });
}

/** A witness over HTTP on its own folder, which responds after `held`. */
async function serveWitness(ofLog: string, held: () => Promise<void> = () => Promise.resolve()) {
  const path = await folder();
  const pem = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const key = signerOf("witness.example", "witness", pem);
  const add = await openWitness(path, { key, logs: [parseVerifierKey(ofLog)] });
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      await held();
      const { status, type, text } = await add(Buffer.concat(chunks).toString());
      response.writeHead(status, { "Content-Type": type }).end(text);
    })();
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const close = () => new Promise((closed) => server.close(closed).closeAllConnections());
  onTestFinished(async () => void (await close()));
  const { port } = server.address() as { port: number };
  const [witness] = parseWitnesses(`${verifierKeyText(key)} http://127.0.0.1:${port}`);
  if (witness === undefined) throw new Error("expected a witness");
  return { witness, close };
}

/** The log's tables of a new database. */
const EMPTIED = "truncate logs, log_entries, log_heads, log_tiles, log_checkpoints";

function declare({ sql }: World, logFolder: string): Promise<string> {
  const given = { folder: logFolder, publicUrl: "https://crash.example", by: "root", reason: "the disk was lost" };
  return sql.begin((tx) => declareLog(tx, given));
}

async function firstEntry({ sql }: World, logId: number): Promise<unknown> {
  const [entry = "null"] = await listEntries(sql, logId, 0, 1);
  return JSON.parse(entry);
}

async function logKey({ sql }: World): Promise<string> {
  const [log] = await listLogs(sql);
  if (log === undefined) throw new Error("expected a log");
  return verifierKeyText({ name: log.origin, type: "log", publicKey: log.publicKey });
}

test("a reader of tiles keeps the thousand that were read last", async () => {
  const { sql } = await createWorld({ ownDatabase: true });
  await sql.begin((tx) => createLog(tx, { id: 1, origin: "o", publicKey: Buffer.alloc(32), by: null, reason: null }));
  const tiles = Array.from({ length: 1_001 }, (_, n) => ({ level: 0, n, hashes: Buffer.alloc(32) }));
  await sql.begin((tx) => saveTiles(tx, 1, tiles));
  const read = tileReader(sql, 1);
  for (const { level, n } of tiles) await read(level, n);
  await sql`delete from log_tiles`;
  for (const { level, n, hashes } of tiles.slice(1)) expect(await read(level, n)).toEqual(hashes);
  await expect(read(0, 0)).rejects.toThrow("expected tile 0/0 of log 1, found none");
});

describe("the transparency log", () => {
  test("states every chain of a table once, and grows only when something moved", async () => {
    const { world, path, publish } = await logged();
    expect(await publish()).toMatchObject({ added: 3, cosigned: 0 });
    expect(await publish()).toMatchObject({ added: 0, cosigned: 0 });
    const [log] = await listLogs(world.sql);
    const entries = (await listEntries(world.sql, log?.id ?? 0, 0, 10)).map(
      (entry) => JSON.parse(entry) as Record<string, string>,
    );
    expect(entries.map(({ kind }) => kind)).toEqual(["log", "table", "accuracy"]);
    const counts = { round_seq: String(ROUNDS.length), on_time_rounds: String(ROUNDS.length) };
    expect(entries[1]).toMatchObject({ table: world.tableName, ...counts });
    await world.play([150]);
    expect(await publish()).toMatchObject({ added: 1, cosigned: 0 });
    expect((await stat(join(path, "key.pem"))).mode & 0o777).toBe(0o600);
    const note = await newestNote(world);
    expect(note).toBe(await readFile(join(path, "checkpoint"), "utf8"));
    expect(readCheckpoint(note)).toMatchObject({ origin: log?.origin, size: 4 });
    expect(await verify(world.sql, { checkpoint: note })).toMatchObject({ ok: true, checked: { log_entries: 4 } });
  });

  test.each([
    ["newest round", "last_seq = last_seq + 7"],
    ["number of on-time rounds", "last_ordinal = last_ordinal - 1"],
    ["history hash", "history_hash = sha256('')"],
    ["newest forecast", "forecast_seq = forecast_seq + 7"],
    ["forecast hash", "forecast_hash = sha256('')"],
  ])("states nothing from a head whose %s its rows contradict, until it is repaired", async (_, damage) => {
    const { world, publish } = await logged();
    await publish();
    await world.play([150]);
    const copy = `create table kept_heads as select * from table_heads where table_id = ${world.tableId}`;
    await tamper(world, `${copy}; update table_heads set ${damage} where table_id = ${world.tableId}`);
    expect(await publish()).toMatchObject({ added: 0, cosigned: 0 });
    await tamper(
      world,
      `delete from table_heads where table_id = ${world.tableId}; insert into table_heads select * from kept_heads`,
    );
    expect(await publish()).toMatchObject({ added: 1, cosigned: 0 });
    expect(await verify(world.sql, {})).toMatchObject({ ok: true });
  });

  test("states the accuracy of a table with many models in several entries", async () => {
    const { world, publish } = await logged();
    await tamper(
      world,
      `insert into accuracy_models select table_id, 'm' || n, palette, first_hour from accuracy_models, generate_series(1, 80) n;
       insert into accuracy_hours select table_id, hour, feature, 'm' || n, sums from accuracy_hours, generate_series(1, 80) n`,
    );
    await publish();
    const entries = (await listEntries(world.sql, 1, 2, 100)).map(
      (entry) => JSON.parse(entry) as { kind: string; cutoff_seq: string; rows: { model: string; feature: string }[] },
    );
    expect(entries.map(({ kind, rows }) => [kind, rows.length])).toEqual(
      [100, 100, 100, 100, 100, 100, 100, 100, 10].map((rows) => ["accuracy", rows]),
    );
    expect(new Set(entries.flatMap(({ rows }) => rows.map(({ model, feature }) => `${model} ${feature}`))).size).toBe(
      810,
    );
    expect(new Set(entries.map(({ cutoff_seq }) => cutoff_seq)).size).toBe(1);
  });

  test("states accuracy once per hour, and only what changed", async () => {
    const { world, publish } = await logged();
    const stated = async () => {
      const statements = (await listEntries(world.sql, 1, 0, 100)).map((entry) => JSON.parse(entry) as Statement);
      return statements.findLast((one) => one.kind === "accuracy")?.rows.map(({ model }) => model);
    };
    await publish();
    await hourLater(world);
    expect(await publish()).toMatchObject({ added: 0 });

    await world.add();
    await world.sql.begin(async (tx) => {
      await noteAccuracy(tx, 1, []);
      const due = () => listAccuracyMarks(tx, { logId: 1, after: 0, limit: 10 });
      expect(await due()).toEqual([]);
      await tx`update logs set accuracy_hour = accuracy_hour - interval '1 second'`;
      expect(await due()).toMatchObject([{ tableId: world.tableId }]);
    });

    // a model that was replaced before, in whose hours nothing is added
    await tamper(
      world,
      `insert into accuracy_models select table_id, 'old', palette, first_hour from accuracy_models;
       insert into accuracy_periods select table_id, feature, 'old', 'all', sums, 1 from accuracy_hours;
       update accuracy_marks set version = 7; update log_heads set accuracy_version = 0`,
    );
    await hourLater(world);
    expect(await publish()).toMatchObject({ added: 1 });
    expect(new Set(await stated())).toEqual(new Set(["old", MODEL]));
    await world.add();
    await hourLater(world);
    expect(await publish()).toMatchObject({ added: 1 });
    expect(new Set(await stated())).toEqual(new Set([MODEL]));
    await tamper(world, "delete from accuracy_hours; update accuracy_marks set version = version + 1");
    await hourLater(world);
    expect(await publish()).toMatchObject({ added: 0 });
    await world.sql.begin(async (tx) => {
      await tx`update logs set accuracy_hour = '-infinity'`;
      expect(await listAccuracyMarks(tx, { logId: 1, after: 0, limit: 10 })).toEqual([]);
    });
  });

  test("states a row of a replaced model again the next day, with what is published then", async () => {
    const { publish, stated, world } = await replaced();
    const [before] = await stated();
    await addHits(world);
    await world.add();
    await hourLater(world);
    await publish();
    expect(await stated()).toEqual([before]);
    await world.sql`update log_heads set accuracy_day = '2000-01-01'`;
    await hourLater(world);
    expect(await publish()).toMatchObject({ added: 1 });
    expect(await stated()).toEqual([before, String(Number(before) + 3)]);
    await hourLater(world);
    expect(await publish()).toMatchObject({ added: 0 });
    // a table without new rounds too
    await world.sql`update log_heads set accuracy_day = '2000-01-01'`;
    await hourLater(world);
    expect(await publish()).toMatchObject({ added: 1 });
    expect(await stated()).toHaveLength(3);
  });

  test("states what changed while the accuracy of a table was damaged, once it is repaired", async () => {
    const { publish, stated, world } = await replaced();
    const [before] = await stated();
    await world.sql`update accuracy_marks set version = version + 1`;
    await addHits(world);
    await world.sql`update accuracy_periods set version = (select version from accuracy_marks)`;
    await world.sql`create table kept as select * from accuracy_hours`;
    await world.sql`update accuracy_hours set sums = '\\xff' where feature = 1`;
    await hourLater(world);
    expect(await publish()).toEqual({ added: 0, cosigned: 0, damaged: [world.tableName] });
    await world.sql`
      update accuracy_hours h set sums = k.sums from kept k
      where (k.feature, k.model, k.hour) = (h.feature, h.model, h.hour)`;
    await hourLater(world);
    expect(await publish()).toMatchObject({ added: 1, damaged: [] });
    expect(await stated()).toEqual([before, String(Number(before) + 3)]);
  });

  test("reads the accuracy of a damaged table once per hour", async () => {
    const { world, publish } = await logged();
    await world.sql`update accuracy_hours set sums = '\\xff'`;
    expect(await publish()).toMatchObject({ damaged: [world.tableName] });
    expect(await publish()).toMatchObject({ damaged: [] });
    await hourLater(world);
    expect(await publish()).toMatchObject({ damaged: [world.tableName] });
  });

  test("states all accuracy of a table again whose versions were set back", async () => {
    const { publish, stated, world } = await replaced();
    await world.sql`update accuracy_marks set version = 3`;
    await hourLater(world);
    expect(await publish()).toMatchObject({ added: 1 });
    expect(await stated()).toHaveLength(2);
  });

  test("states nothing about the accuracy of a table with a damaged row, and still states the others", async () => {
    const { world, publish } = await logged({ tables: [{}, {}] });
    const [damaged = 0, whole = 0] = world.tableIds;
    await world.play(ROUNDS, whole, { atOnce: 1 });
    await world.add();
    await world.sql`update accuracy_hours set sums = '\\xff' where table_id = ${damaged}`;
    expect(await publish()).toEqual({ added: 4, cosigned: 0, damaged: [world.tableName] });
    const entries = (await listEntries(world.sql, 1, 0, 10)).map(
      (entry) => JSON.parse(entry) as Record<string, string>,
    );
    const accurate = entries.filter(({ kind }) => kind === "accuracy").map(({ table }) => table);
    expect(accurate).toEqual([entries.findLast(({ kind }) => kind === "table")?.["table"]]);
    expect(accurate).not.toContain(world.tableName);
  });

  test("proves a forecast down to the signed root", async () => {
    const { world, publish } = await logged();
    await publish();
    const id = `f${world.tableId}-2`;
    const proof = await proveForecast(world.sql, world.sql, id);
    expect(proof).toMatchObject({ forecast_id: id, index: 1 });
    const stated = JSON.parse(proof.entry) as { forecast_hash: string };
    expect(proof.following.at(-1)?.hash).toBe(stated.forecast_hash);
    expect(proof.following[0]?.prev_hash).toBe(proof.hash);
    await world.play([150]);
    await expect(proveForecast(world.sql, world.sql, `f${world.tableId}-999`)).rejects.toThrow(
      "expected a checkpoint that covers forecast",
    );
  });

  test("proves a forecast by the nearest statement of all logs, and refuses a proof of the whole table", async () => {
    const { world, path, publish } = await logged();
    await publish();
    const before = await newestNote(world);
    await world.play([150]);
    await declare(world, path);
    await publish();
    const prove = (seq: number) => proveForecast(world.sql, world.sql, `f${world.tableId}-${seq}`);
    expect(await prove(2)).toMatchObject({ index: 1, checkpoint: before });
    const [newest] = await world.sql<{ seq: number }[]>`select max(forecast_seq)::integer as seq from log_entries`;
    expect(await prove(newest?.seq ?? 0)).toMatchObject({ following: [], checkpoint: await newestNote(world) });
    await tamper(world, "update log_entries set forecast_seq = 10001 where forecast_seq is not null");
    await expect(prove(1)).rejects.toThrow(`expected a statement within 10000 forecasts of f${world.tableId}-1`);
  });

  test("is not signed when its checkpoint file is missing, ahead of the database or of another tree", async () => {
    const { world, path, publish } = await logged();
    await publish();
    const first = await readFile(join(path, "checkpoint"), "utf8");
    await world.play([150]);
    await rm(join(path, "checkpoint"));
    await expect(publish()).rejects.toThrow(/expected the newest checkpoint of .* found none/);
    const { origin } = readCheckpoint(first);
    const signer = signerOf(origin, "log", await readFile(join(path, "key.pem"), "utf8"));
    await writeFile(join(path, "checkpoint"), signCheckpoint({ ...readCheckpoint(first), size: 99 }, signer));
    await expect(publish()).rejects.toThrow("the database was restored from a backup");
    await writeFile(
      join(path, "checkpoint"),
      signCheckpoint({ ...readCheckpoint(first), root: Buffer.alloc(32) }, signer),
    );
    await expect(publish()).rejects.toThrow("the log was changed");
    expect(readCheckpoint(await newestNote(world)).size).toBe(3);
    await writeFile(join(path, "checkpoint"), first);
    expect(await publish()).toMatchObject({ added: 0 });
    expect(readCheckpoint(await newestNote(world)).size).toBe(4);
  });

  test("does not begin again in an emptied database, until an operator declares another log", async () => {
    const { world, path, publish } = await logged();
    await publish();
    const before = await newestNote(world);
    await tamper(world, EMPTIED);
    await expect(publish()).rejects.toThrow(LogRefusal);
    const origin = await declare(world, path);
    expect(origin).toBe(`${readCheckpoint(before).origin}/2`);
    await publish();
    expect(readCheckpoint(await newestNote(world)).origin).toBe(origin);
    expect(await firstEntry(world, 2)).toEqual({ kind: "log", origin, previous: before, reason: "the disk was lost" });
    expect(await readFile(join(path, "checkpoint.1"), "utf8")).toBe(before);
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    expect(await verify(world.sql, { checkpoint: before })).toMatchObject({
      ok: false,
      first_failure: { kind: "checkpoint", expected: `a log of the origin ${readCheckpoint(before).origin}` },
    });
  });

  test("names the larger checkpoint of a restored database and its folder as the last one of the previous log", async () => {
    const { world, path, publish } = await logged();
    const kept = join(path, "checkpoint");
    await publish();
    const first = await newestNote(world);
    await world.play([150]);
    await publish();
    const second = await newestNote(world);
    await tamper(world, "delete from log_checkpoints where size > 3"); // the backup was made before it
    await declare(world, path);
    await publish();
    expect(await firstEntry(world, 2)).toMatchObject({ previous: second });
    expect(await readFile(`${kept}.1`, "utf8")).toBe(second);

    const third = await newestNote(world);
    await writeFile(kept, first); // a folder of before, which the database is ahead of
    await declare(world, path);
    await publish();
    expect(await firstEntry(world, 3)).toMatchObject({ previous: third });
    expect(await readFile(`${kept}.1`, "utf8")).toBe(second);
  });

  test.each([
    { database: "emptied", change: EMPTIED, isNamed: false },
    { database: "restored", change: "delete from log_checkpoints", isNamed: true },
  ])("names a checkpoint of another key in its folder only if the $database database has the key", async (given) => {
    const { world, path, publish } = await logged();
    await publish();
    const before = await newestNote(world);
    await rm(join(path, "key.pem"));
    await tamper(world, given.change);
    await declare(world, path);
    await publish();
    expect(await firstEntry(world, 2)).toMatchObject({ previous: given.isNamed ? before : "" });
    expect(await readFile(join(path, "checkpoint.1"), "utf8")).toBe(before);
  });

  test("does not name a checkpoint that the previous log did not sign", async () => {
    const { world, path, publish } = await logged();
    await publish();
    const before = await newestNote(world);
    const pem = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const checkpoint = { ...readCheckpoint(before), size: 99 };
    const forged = signCheckpoint(checkpoint, signerOf(checkpoint.origin, "log", pem));
    await writeFile(join(path, "checkpoint"), forged);
    await declare(world, path);
    await publish();
    expect(await firstEntry(world, 2)).toMatchObject({ previous: before });
    expect(await readFile(join(path, "checkpoint.1"), "utf8")).toBe(forged);
  });

  test("numbers a declared log after the one whose checkpoint is in its folder", async () => {
    const { world, path, publish } = await logged();
    await publish();
    const first = await readFile(join(path, "checkpoint"), "utf8");
    await declare(world, path);
    await publish();
    const second = await readFile(join(path, "checkpoint"), "utf8");
    await tamper(world, EMPTIED);
    expect(await declare(world, path)).toBe(`${readCheckpoint(first).origin}/3`);
    await publish();
    expect(await firstEntry(world, 3)).toMatchObject({ previous: second });
    expect(await readFile(join(path, "checkpoint.1"), "utf8")).toBe(first);
    expect(await readFile(join(path, "checkpoint.2"), "utf8")).toBe(second);
  });

  test("is not declared while the checkpoint in its folder is damaged", async () => {
    const { world, path, publish } = await logged();
    await publish();
    await writeFile(join(path, "checkpoint"), "damaged");
    await expect(declare(world, path)).rejects.toThrow(`expected a signed checkpoint in ${join(path, "checkpoint")}`);
  });

  test("is not signed while its folder has the checkpoint of a later log", async () => {
    const { world, path, publish } = await logged();
    await publish();
    const origin = await declare(world, path); // and the backup was made before its first checkpoint
    const pem = await readFile(join(path, "key.pem"), "utf8");
    const later = { origin: origin.replace(/2$/, "3"), size: 9, root: Buffer.alloc(32) };
    await writeFile(join(path, "checkpoint"), signCheckpoint(later, signerOf(later.origin, "log", pem)));
    await expect(publish()).rejects.toThrow(`expected the newest checkpoint of ${origin}`);
    expect(await declare(world, path)).toBe(origin.replace(/2$/, "4"));
    await publish();
    expect(readCheckpoint(await newestNote(world)).origin).toBe(origin.replace(/2$/, "4"));
  });

  test("waits for a run of an earlier log that replaces the checkpoint in the same folder", async () => {
    const { world, path, publish } = await logged();
    await publish();
    const before = await readFile(join(path, "checkpoint"), "utf8");
    await declare(world, path);
    let published: Promise<unknown> | undefined;
    await world.sql.begin(async (run) => {
      await run`select from logs where id = 1 for no key update`;
      published = publish();
      await lockWaits(world.sql, 1);
      expect(await readFile(join(path, "checkpoint"), "utf8")).toBe(before);
    });
    expect(await published).toMatchObject({ added: expect.any(Number) });
  });

  test("replaces no checkpoint after its lock was lost", async () => {
    const { path, publish } = await logged();
    await publish();
    const file = join(path, "checkpoint");
    const first = await readFile(file, "utf8");
    const pem = await readFile(join(path, "key.pem"), "utf8");
    const { origin } = readCheckpoint(first);
    const note = (size: number) =>
      signCheckpoint({ origin, size, root: Buffer.alloc(32) }, signerOf(origin, "log", pem));
    const locked = () => Promise.resolve();
    const late = keepNewestNote(path, note(100), first, async () => {
      await keepNewestNote(path, note(200), first, locked); // the next run, after this one lost its lock
      throw new Error("the connection to PostgreSQL was lost");
    });
    await expect(late).rejects.toThrow("the connection to PostgreSQL was lost");
    await expect(keepNewestNote(path, note(100), first, locked)).rejects.toThrow("another process replaced it");
    expect(readCheckpoint(await readFile(file, "utf8")).size).toBe(200);
    expect((await readdir(path)).toSorted()).toEqual(["checkpoint", "key.pem"]);
  });

  test("refuses another key than the log's", async () => {
    const { path, publish } = await logged();
    await publish();
    await rm(join(path, "key.pem"));
    await expect(publish()).rejects.toThrow(/expected the key of the log .* found none/);
    const other = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
    await writeFile(join(path, "key.pem"), other);
    await expect(publish()).rejects.toThrow(/expected the key of the log .* found another one/);
  });
});

describe("witnesses", () => {
  test("cosign what grows, and keep a restored database from being signed", async () => {
    const { world, path, publish } = await logged();
    await publish();
    const { witness } = await serveWitness(await logKey(world));
    expect(await publish([witness])).toMatchObject({ added: 0, cosigned: 1 });
    const backup = await folder();
    await cp(path, backup, { recursive: true });
    await world.play([150]);
    expect(await publish([witness])).toMatchObject({ added: 1, cosigned: 1 });
    expect(cosignedAt(await newestNote(world), witness.key)).toBeGreaterThan(1_700_000_000);

    // database and folder of yesterday: only the witness remembers
    await tamper(
      world,
      `delete from log_checkpoints where size > 3; delete from log_entries where index >= 3;
       update logs set size = 3; update log_tiles set hashes = substr(hashes, 1, 96) where level = 0`,
    );
    await rm(path, { recursive: true });
    await cp(backup, path, { recursive: true });
    await world.play([167]);
    await expect(publish([witness])).rejects.toThrow(
      "expected witness witness.example to hold at most 3 entries, found 4",
    );
  });

  test("that respond late do not let a run move the signed checkpoint back behind that of a later run", async () => {
    const { world, path, publish } = await logged();
    await publish();
    const [asked, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { witness } = await serveWitness(await logKey(world), () => {
      asked.resolve();
      return held.promise;
    });
    await world.play([150]);
    const late = publish([witness]);
    await asked.promise;
    await world.play([167]);
    expect(await publish()).toMatchObject({ added: 1 });
    const newest = await readFile(join(path, "checkpoint"), "utf8");
    expect(readCheckpoint(newest).size).toBe(5);
    held.resolve();
    expect(await late).toMatchObject({ added: 1, cosigned: 0 });
    expect(await readFile(join(path, "checkpoint"), "utf8")).toBe(newest);
    expect(await publish([witness])).toMatchObject({ cosigned: 1 });
    expect(await verify(world.sql, { witnesses: [witness] })).toMatchObject({ ok: true });
  });

  test("that cosigned in two runs leave the checkpoint with the first note and its time", async () => {
    const { world, publish } = await logged();
    await publish();
    const note = await newestNote(world);
    const pem = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const witness = { key: signerOf("w.example", "witness", pem), url: "http://w.example" };
    const { size } = readCheckpoint(note);
    for (const seconds of [1_800_000_000, 1_800_000_005])
      await saveCheckpoint(world.sql, 1, {
        size,
        note: note + cosign(note, witness.key, seconds),
        cosignedAt: seconds,
      });
    expect(cosignedAt(await newestNote(world), witness.key)).toBe(1_800_000_000);
    expect(await verify(world.sql, { witnesses: [witness] })).toMatchObject({ ok: true });
  });

  test("that cannot be reached keep a checkpoint from being signed", async () => {
    const { world, publish } = await logged();
    await publish();
    const { witness, close } = await serveWitness(await logKey(world));
    await publish([witness]);
    await close();
    await world.play([150]);
    await expect(publish([witness])).rejects.toThrow("expected witness witness.example to be reachable");
    expect(readCheckpoint(await newestNote(world)).size).toBe(3);
  });

  test("refuse a fork, and a size that they do not hold", async () => {
    const { world, path, publish } = await logged();
    await publish();
    const first = await newestNote(world);
    const key = signerOf(readCheckpoint(first).origin, "log", await readFile(join(path, "key.pem"), "utf8"));
    const pem = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const home = await folder();
    const options = { key: signerOf("w", "witness", pem), logs: [key] };
    const add = await openWitness(home, options);
    expect(await add(`old 0\n\n${first}`)).toMatchObject({ status: 200 });
    const again = await openWitness(home, options); // a restart forgets nothing
    const forked = signCheckpoint({ ...readCheckpoint(first), root: Buffer.alloc(32, 1) }, key);
    const grown = signCheckpoint({ ...readCheckpoint(first), size: 9, root: Buffer.alloc(32, 1) }, key);
    expect(await again(`old 3\n\n${forked}`)).toMatchObject({ status: 422 });
    expect(await again(`old 3\n\n${grown}`)).toMatchObject({ status: 422 });
    expect(await again(`old 0\n\n${grown}`)).toMatchObject({ status: 409, type: "text/x.tlog.size", text: "3\n" });
    expect(await again(`old 3\n\n${first.replace("\n3\n", "\n4\n")}`)).toMatchObject({ status: 403 });
    expect(await again("old 3\n")).toMatchObject({ status: 400 });
    const stranger = signCheckpoint({ ...readCheckpoint(first), origin: "other" }, { ...key, name: "other" });
    expect(await again(`old 0\n\n${stranger}`)).toMatchObject({ status: 404 });
  });
});

describe("verify", () => {
  test("are stated with their keys whenever accuracy is stated", async () => {
    const { world, publish } = await logged();
    await publish();
    const { witness } = await serveWitness(await logKey(world));
    await world.sql`update log_heads set accuracy_day = '2000-01-01'`; // no accuracy changed since
    await hourLater(world);
    expect(await publish([witness])).toMatchObject({ added: 2, cosigned: 1 });
    const [, stated = "{}"] = await listEntries(world.sql, 1, 3, 2);
    expect(JSON.parse(stated)).toEqual({ kind: "witnesses", keys: [verifierKeyText(witness.key)] });
    await world.play([150]);
    expect(await publish([witness])).toMatchObject({ added: 1 });
    expect(await verify(world.sql, { witnesses: [witness] })).toMatchObject({ ok: true });
  });

  test("counts checkpoints with the time of a witness that is not configured, and fails for a time before all cosignatures", async () => {
    const { world, publish } = await logged();
    await publish();
    const { witness } = await serveWitness(await logKey(world));
    await publish([witness]);
    const first = await newestNote(world);
    const pem = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const next = { key: signerOf("next.example", "witness", pem), url: "http://next.example" };
    const added = cosign(first, next.key, (cosignedAt(first, witness.key) ?? 0) + 60);
    await world.sql`update log_checkpoints set note = ${first + added}`;
    for (const witnesses of [[witness, next], [witness]]) {
      const found = await verify(world.sql, { witnesses });
      expect(found).toMatchObject({ ok: true });
      expect(found).not.toHaveProperty("unknown_cosignatures");
    }
    for (const witnesses of [[next], []])
      expect(await verify(world.sql, { witnesses })).toMatchObject({ ok: true, unknown_cosignatures: 1 });

    const unsigned = first.slice(0, first.lastIndexOf("— witness.example"));
    await world.sql`update log_checkpoints set note = ${unsigned + added}`;
    expect(await verify(world.sql, { witnesses: [next] })).toMatchObject({
      ok: false,
      first_failure: { kind: "checkpoint", expected: expect.stringMatching(/^cosigned at \d+$/) as string },
    });
  });

  test("counts a checkpoint with a line that no one signed", async () => {
    const { world, publish } = await logged();
    await publish();
    const bytes = Buffer.alloc(4 + 8 + 64);
    bytes.writeBigUInt64BE(1_700_000_000n, 4);
    const line = `— witness.example ${bytes.toString("base64")}\n`;
    await world.sql`update log_checkpoints set note = note || ${line}, cosigned_at = to_timestamp(1700000000)`;
    expect(await verify(world.sql)).toMatchObject({ unknown_cosignatures: 1 });
    const { witness } = await serveWitness(await logKey(world));
    expect(await verify(world.sql, { witnesses: [witness] })).toMatchObject({ unknown_cosignatures: 1 });
  });

  test.each([
    ["a changed entry", "update log_entries set entry = replace(entry, '\"8\"', '\"7\"') where index = 1", "log"],
    ["a removed newest entry", "delete from log_entries where index = 2", "log"],
    ["a changed tile", "update log_tiles set hashes = decode(repeat('00', 96), 'hex')", "log"],
    ["a forged checkpoint", "update log_checkpoints set note = replace(note, E'\\n3\\n', E'\\n2\\n')", "checkpoint"],
  ])("finds %s", async (_, statement, kind) => {
    const { world, publish } = await logged();
    await publish();
    await tamper(world, statement);
    const found = await verify(world.sql);
    expect([found.ok, found.first_failure?.kind]).toEqual([
      false,
      kind === "log" && statement.includes("index = 1") ? "log_statement" : kind,
    ]);
  });

  test.each([
    ["no table", "table_id = null", "table none"],
    ["another table", "table_id = 999999", "table none"],
  ])("finds an entry that is filed under %s, so that it is not compared with its rows", async (_, change, found) => {
    const { world, publish } = await logged();
    await publish();
    await tamper(world, `update log_entries set ${change} where index = 1`);
    expect((await verify(world.sql)).first_failure).toEqual({
      kind: "log_statement",
      id: "1 about the table that its columns name",
      expected: `table ${world.tableName}`,
      found,
    });
  });

  test.each([
    ["its rounds stay", "", { kind: "table", expected: "a head", found: "none" }],
    [
      "none of its rows stay",
      "delete from score_sets; delete from forecast_sets; delete from rounds",
      { kind: "log_statement", found: "table none" },
    ],
  ])("finds a table whose head was deleted, where %s", async (_, others, failure) => {
    const { world, publish } = await logged();
    await publish();
    await tamper(world, `delete from table_heads; ${others}`);
    expect((await verify(world.sql)).first_failure).toMatchObject(failure);
  });

  test("finds that the head of one verified table was deleted, and not that of another", async () => {
    const { world } = await logged({ tables: [{}, {}] });
    const [headless = 0, other = 0] = world.tableIds;
    await tamper(world, `delete from table_heads where table_id = ${headless}`);
    expect((await verify(world.sql, { tableId: headless })).first_failure).toMatchObject({ expected: "a head" });
    expect(await verify(world.sql, { tableId: other })).toMatchObject({ ok: true });
  });

  test("compares the entries with a kept checkpoint also where one table is verified", async () => {
    const { world, publish } = await logged();
    await publish();
    const given = { tableId: world.tableId, checkpoint: await newestNote(world) };
    expect(await verify(world.sql, given)).toMatchObject({ ok: true, checked: { log_entries: 3 } });
    await tamper(world, "update log_entries set entry = replace(entry, 'example', 'invalid') where index = 0");
    expect((await verify(world.sql, given)).first_failure).toMatchObject({ kind: "log" });
  });

  test("finds by a kept checkpoint that the log itself was cut off", async () => {
    const { world, publish } = await logged();
    await publish();
    const note = await newestNote(world);
    // the log's own tables are rolled back too: only a kept checkpoint tells
    await tamper(
      world,
      `delete from log_checkpoints; delete from log_entries where index >= 1; delete from log_heads;
       update logs set size = 1; update log_tiles set hashes = substr(hashes, 1, 32)`,
    );
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    expect(await verify(world.sql, { checkpoint: note })).toMatchObject({
      ok: false,
      first_failure: { kind: "checkpoint", expected: "at least 3 entries", found: "1: entries were removed" },
    });
  });

  test.each([
    ["cut off", ""],
    [
      "cut off, and whose entry is filed under a table",
      "; update log_entries set table_id = 999999 where table_id is null",
    ],
  ])("finds an audit log whose end was %s", async (_, hidden) => {
    const { world, publish } = await logged();
    for (const reason of ["one", "two"])
      await world.sql.begin((tx) =>
        appendAudit(tx, {
          surface: "cli",
          actor: "ana",
          role: null,
          action: "queue.pause",
          target: "queue score-accuracy",
          before: null,
          after: null,
          reason,
          requestId: null,
          address: null,
        }),
      );
    await publish();
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    await tamper(
      world,
      `delete from audit_log where seq = 2;
       update audit_head set seq = 1, hash = (select hash from audit_log where seq = 1)${hidden}`,
    );
    expect(await verify(world.sql)).toMatchObject({
      ok: false,
      first_failure: { kind: "log_statement", id: expect.stringMatching(/about audit log$/) as string },
    });
  });

  test("finds that the newest calibration was removed", async () => {
    const { world, publish } = await logged();
    // a run is asked for after a thousand rounds, or a quarter of an hour after the one before
    await world.play(generatedRounds(1_000).map(({ hundredths }) => hundredths));
    for (const { run } of await requestRollingRuns(world.sql, world.house))
      await runRollingCalibration(world.sql, run, signal);
    await world.play([150]);
    await publish();
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    await tamper(world, "delete from calibrations");
    expect((await verify(world.sql)).first_failure).toMatchObject({
      kind: "log_statement",
      found: "calibration_hash of no row",
    });
  });

  test.each([
    ["an on-time round", 1],
    ["a late round", 3],
  ])("finds a false number of on-time rounds up to %s", async (_, index) => {
    const { world, publish } = await logged();
    await publish();
    await world.addLate("import", [
      { roundId: "1", hundredths: 150 },
      { roundId: "2", hundredths: 250 },
    ]);
    await publish();
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    await tamper(
      world,
      `update log_entries set entry = replace(entry, '"on_time_rounds":"8"', '"on_time_rounds":"7"') where index = ${index}`,
    );
    expect((await verify(world.sql)).first_failure).toEqual({
      kind: "log_statement",
      id: `${index} about ${world.tableName}`,
      expected: "on_time_rounds 7",
      found: "on_time_rounds 8",
    });
  });

  test("finds a false statement about accuracy, and none that later scores and revisions only outdate", async () => {
    const { world, publish } = await logged();
    await publish();
    await world.play([150, 167, 201]);
    await world.add();
    await world.sql`
      insert into conflicts (table_id, round_id, kept_hundredths, other_hundredths, other_raw)
      select table_id, round_id, hundredths, hundredths + 1, 'x' from rounds where seq = 4`;
    await world.add();
    expect(await world.sql`select from score_revisions`).not.toHaveLength(0);
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    for (const part of ["hits", "log_loss", "voids"]) {
      const entry = `(select regexp_replace(entry, '"${part}":"\\d+"', '"${part}":"77"') from log_entries where index = 2)`;
      await tamper(
        world,
        `create table kept as select * from log_entries where index = 2; update log_entries set entry = ${entry} where index = 2`,
      );
      expect((await verify(world.sql)).first_failure).toMatchObject({
        kind: "log_statement",
        id: `2 about ${world.tableName}`,
        expected: expect.stringMatching(`^${part} of next_color by k7.* 77$`) as string,
      });
      await tamper(
        world,
        "update log_entries set entry = kept.entry from kept where log_entries.index = 2; drop table kept",
      );
    }
  });

  test("compares each row of accuracy as it was stated last", async () => {
    const { world, publish } = await logged();
    await publish();
    const append = (hits: string) =>
      world.sql.begin(async (tx) => {
        await tx`set local session_replication_role = replica`;
        const [, , whole = ""] = await listEntries(tx, 1, 0, 3);
        const statement = JSON.parse(whole) as AccuracyStatement;
        const rows = statement.rows.filter(({ feature }) => feature === "next_color");
        const entry = entryOf({ ...statement, rows: rows.map((row) => ({ ...row, hits: hits || row.hits })) });
        await tx`
          insert into log_entries (log_id, index, table_id, entry) values (1, 3, ${world.tableId}, ${entry})
          on conflict (log_id, index) do update set entry = excluded.entry`;
        const entries = await listEntries(tx, 1, 0, 10);
        await tx`update logs set size = 4`;
        await tx`update log_tiles set hashes = ${Buffer.concat(entries.map((one) => leafHash(Buffer.from(one))))}`;
        await tx`delete from log_checkpoints`;
      });
    await append("");
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    await append("77");
    expect((await verify(world.sql)).first_failure).toMatchObject({ id: `3 about ${world.tableName}` });
    await append("");
    await tamper(world, `update log_entries set entry = replace(entry, 'window:', 'windows:') where index = 2`);
    expect((await verify(world.sql)).first_failure).toMatchObject({
      id: expect.stringMatching(/^[23] about /) as string,
      expected: expect.stringMatching(/^forecasts of windows?:/) as string,
    });
  });

  test("parses statements about accuracy from the newest one on, until each row was found", async () => {
    const { world, publish } = await logged();
    await publish();
    const append = (rows: string) =>
      tamper(
        world,
        `insert into log_entries (log_id, index, table_id, entry)
         select log_id, n, table_id, jsonb_set(entry::jsonb, '{rows}', ${rows})::text
         from log_entries, generate_series(coalesce((select max(index) + 1 from log_entries), 0), 200) n where index = 2
         order by n limit 60`,
      );
    const first = (text: string) => tamper(world, `update log_entries set entry = ${text} where index = 2`);
    const find = () => world.sql.begin((tx) => findContradictedAccuracy(tx, world.tableId));
    const nextColor = `jsonb_path_query_array(entry::jsonb, '$.rows[*] ? (@.feature == "next_color")')`;
    await append(nextColor);
    expect(await find()).toBeNull();
    await first(`replace(entry, '"hits":"0"', '"hits":"77"')`);
    expect(await find()).toMatchObject({ logId: 1, index: 2, stated: "77" });
    await first(`replace(entry, '"hits":"77"', '"hits":"0"')`);
    await append("entry::jsonb -> 'rows'");
    await first("'no JSON'");
    expect(await find()).toBeNull();
  });

  test("finds a chain that was computed again after it was stated", async () => {
    const { world, publish } = await logged();
    await publish();
    await world.sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`
        update log_entries
        set entry = replace(entry, entry::jsonb ->> 'score_hash', ${"ab".repeat(32)})
        where index = 1`;
      const entries = await listEntries(tx, 1, 0, 10);
      const hashes = Buffer.concat(entries.map((entry) => leafHash(Buffer.from(entry))));
      await tx`update log_tiles set hashes = ${hashes}`;
      await tx`delete from log_checkpoints`;
    });
    expect((await verify(world.sql)).first_failure).toMatchObject({
      kind: "log_statement",
      expected: `score_hash ${"ab".repeat(32)}`,
    });
  });
});

describe("sealed", () => {
  test("counts what a witness cosigned before the next round was requested, and verify allows no more", async () => {
    const { world, publish } = await logged();
    await publish();
    const { witness } = await serveWitness(await logKey(world));
    await publish([witness]);
    const sealed = async () => {
      const of = { tableIds: [world.tableId], periods: ["all"], feature: "next_color" } as const;
      return (await listPublished(world.sql, of)).rows[0]?.sums.sealed;
    };
    expect(await sealed()).toBe(0n);
    // the witness's time has whole seconds: the round is requested after that second
    await eventually(async () => {
      const [clock] = await world.sql<{ passed: boolean }[]>`
        select clock_timestamp() > max(cosigned_at) + interval '1.1 seconds' as passed from log_checkpoints`;
      return clock?.passed === true;
    });
    await world.play([150]);
    await world.play([167]);
    await world.add();
    expect(await sealed()).toBe(1n);
    expect(await verify(world.sql, { witnesses: [witness] })).toMatchObject({ ok: true });
    await tamper(world, "update log_checkpoints set cosigned_at = null");
    expect(await verify(world.sql)).toMatchObject({ ok: false, first_failure: { kind: "accuracy", found: "60: 1" } });
    await tamper(world, "update log_checkpoints set cosigned_at = '2020-01-01'");
    expect(await verify(world.sql, { witnesses: [witness] })).toMatchObject({
      ok: false,
      first_failure: { kind: "checkpoint" },
    });
  });

  test("is found without reading the checkpoints that no witness cosigned", async () => {
    const { world, publish } = await logged();
    await publish();
    await world.sql`
      insert into log_checkpoints (log_id, size, note)
      select 1, 3 + n, 'uncosigned' from generate_series(1, 20000) n`;
    await world.sql`analyze log_checkpoints`;
    const read = await world.sql.begin(async (tx) => {
      expect((await listSets(tx, [{ tableId: world.tableId, after: 0n }], 10)).length).toBeGreaterThan(5);
      const [row] = await tx<{ rows: number }[]>`
        select (seq_tup_read + idx_tup_fetch)::integer as rows
        from pg_stat_xact_user_tables
        where relname = 'log_checkpoints'`;
      return row?.rows;
    });
    expect(read).toBe(0);
  });
});
