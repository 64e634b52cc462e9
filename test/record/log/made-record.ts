/**
 * A public record as an instance serves it, made in memory: chains, log, signed checkpoint and exports. The test
 * holds the key, as an operator does, so that every chain and the log agree with rows that are false.
 */
import { execFile } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { microNats } from "../../../src/forecasts/score/scoring.ts";
import {
  FIRST_PREVIOUS_HASH,
  forecastHash,
  forecastStrings,
  type HashedForecast,
  type HashedRound,
  type HashedScore,
  historyHash,
  historyStrings,
  scoreHash,
  scoreStrings,
} from "../../../src/record/hashes.ts";
import { originOf } from "../../../src/record/log/origin.ts";
import {
  type AccuracyStatement,
  entryOf,
  type Statement,
  type TableStatement,
} from "../../../src/record/log/statements.ts";
import { parseTilePath, type TilePath } from "../../../src/record/log/tile-path.ts";
import { growTiles, leafHash, type Tile } from "../../../src/record/log/tree.ts";
import { type SignerKey, signCheckpoint, signerOf, verifierKeyText } from "../../../src/signed-note.ts";
import { mth } from "./rfc6962.ts";

export const TABLE = "alpha/crash/global";
/** The verifier. */
export const SCRIPT = fileURLToPath(new URL("../../../docs/verify_record.py", import.meta.url));
/**
 * The script, with its waits printed instead of waited for, and the most memory that its own objects took. SET has lines
 * that replace those of the same constants.
 */
const QUICK = `import os, re, sys, time, tracemalloc
time.sleep = lambda seconds: print("wait", seconds)
sys.argv = sys.argv[1:]
text = open(sys.argv[0], encoding="utf-8").read()
for line in os.environ.get("SET", "").splitlines():
    text, count = re.subn("(?m)^" + line.split(" = ")[0] + " = .*", line, text)
    assert count == 1, line
if "MEASURED" in os.environ: tracemalloc.start()
exec(compile(text, sys.argv[0], "exec"), {"__name__": "__main__"})
if "MEASURED" in os.environ: print("kilobytes", tracemalloc.get_traced_memory()[1] // 1024)`;
const MODEL = "k7@1-7262526239ae";
const run = promisify(execFile);

/** A forecast of the record; its hash of the history is that of its cutoff unless it is given. */
export type MadeForecast = Omit<HashedForecast, "historyHash"> & { historyHash?: string };

/** The rows of a table, and what the log states about it after some of its rounds. */
export interface Facts {
  rounds: HashedRound[];
  forecasts: MadeForecast[];
  scores: HashedScore[];
  /** Numbers of the rounds after which the log states the table, in order. */
  statedAt: number[];
  /** Changes the accuracy statement, which is made after the second statement about the table; null for none. */
  accuracy: ((statement: AccuracyStatement) => void) | null;
  /** Another accuracy statement after the third one: up to which round, and with the rows of which features. */
  laterAccuracy?: { upTo: number; features: readonly string[] };
  /** After which statement the accuracy is stated, if it is not the second one. */
  accuracyAfter?: number;
  /** The keys of witnesses that the log states. */
  witnesses?: string[];
  /** Entries about something else before each statement about the table. */
  others?: number;
  /** Changes a statement about the table. */
  change?: (statement: TableStatement) => void;
  /** The first entry. */
  log: { previous: string; reason: string };
}

const COLORS = ["low", "mid", "high"];
const hundredthsOf = (color: string) => ({ low: 150, mid: 250, high: 1_200 })[color] ?? 150;

const timeAt = (milliseconds: number) => new Date(milliseconds).toISOString().replace("Z", "0000Z");

/** A round of the record: one every 15 seconds, the newest a minute ago. */
export function madeRound(seq: number, count: number, color: string, msAgo = 60_000): HashedRound {
  const at = Date.now() - msAgo - 15_000 * (count - seq);
  const [requestedAt, receivedAt] = [timeAt(at), timeAt(at + 1_000)];
  return {
    seq: BigInt(seq),
    roundId: String(seq),
    hundredths: hundredthsOf(color),
    color,
    source: "poll",
    occurredAt: null,
    requestedAt,
    receivedAt,
    absentAt: requestedAt,
    late: false,
    afterGap: false,
  };
}

/**
 * An honest table: after each round but the newest a forecast of the next color, and a window of two rounds after every
 * second one.
 */
export function honestFacts(count = 12, colors: readonly string[] = COLORS, msAgo?: number): Facts {
  const rounds = Array.from({ length: count }, (_, at) =>
    madeRound(at + 1, count, colors[(7 * at + Math.floor(at / 3)) % colors.length] ?? "low", msAgo),
  );
  const forecasts: MadeForecast[] = [];
  const scores: HashedScore[] = [];
  for (const cutoff of rounds.slice(0, -1)) {
    const features = ["next_color", ...(cutoff.seq % 2n === 1n && cutoff.seq + 2n <= count ? ["window:high:50"] : [])];
    for (const feature of features) {
      const isWindow = feature !== "next_color";
      const seq = BigInt(forecasts.length + 1);
      const span = rounds.slice(Number(cutoff.seq), Number(cutoff.seq) + (isWindow ? 2 : 1));
      const end = span.at(-1);
      if (end === undefined) throw new Error("expected a round that ends the forecast");
      forecasts.push({
        seq,
        forecastId: `f1-${seq}`,
        table: TABLE,
        model: MODEL,
        feature,
        issuedAt: cutoff.receivedAt,
        absentAt: cutoff.absentAt ?? "",
        pauseMs: 5_000,
        cutoffRoundId: cutoff.roundId,
        targetRoundId: String(cutoff.seq + 1n),
        horizon: isWindow ? 2 : 1,
        pPpm: isWindow ? [510_000] : [500_000, 300_000, 200_000],
        basePpm: isWindow ? [500_000] : [400_000, 400_000, 200_000],
      });
      const isHit = span.some(({ color }) => color === "high");
      scores.push({
        forecastId: `f1-${seq}`,
        rev: 1,
        reason: "",
        outcome: isWindow ? (isHit ? "1" : "0") : end.color,
        settledSeq: end.seq,
        targetRequestedAt: end.requestedAt,
        scoredAt: end.receivedAt,
      });
    }
  }
  scores.sort((a, b) => Number(a.settledSeq - b.settledSeq));
  return { rounds, forecasts, scores, statedAt: [4, 8, count], accuracy: () => {}, log: { previous: "", reason: "" } };
}

/** The rows of the accuracy that the scores give, whether they are true or not. */
function accuracyOf({ rounds, forecasts, scores }: Facts, upTo: number): AccuracyStatement {
  const newest = new Map(scores.filter(({ settledSeq }) => settledSeq <= upTo).map((one) => [one.forecastId, one]));
  const seqs = new Map(rounds.map(({ roundId, seq }) => [roundId, seq]));
  const issued = forecasts.filter(({ cutoffRoundId }) => (seqs.get(cutoffRoundId) ?? 0n) <= upTo);
  const revision = scores.findLast(({ rev, settledSeq }) => rev > 1 && settledSeq <= upTo);
  const rows = [...Map.groupBy(issued, ({ feature }) => feature)].map(([feature, own]) => {
    const ended = own.flatMap((forecast) => {
      const score = newest.get(forecast.forecastId);
      return score === undefined ? [] : [{ forecast, score }];
    });
    const scored = ended.filter(({ score }) => score.reason === "");
    let hits = 0;
    let loss = 0;
    for (const { forecast, score } of scored) {
      const [p = 0] = forecast.pPpm;
      const all = feature === "next_color" ? forecast.pPpm : [p, 1_000_000 - p];
      const outcome = feature === "next_color" ? COLORS.indexOf(score.outcome ?? "") : score.outcome === "1" ? 0 : 1;
      const likeliest = feature === "next_color" ? all.indexOf(Math.max(...all)) : 0;
      hits += outcome === likeliest ? 1 : 0;
      loss += microNats(all[outcome] ?? 1);
    }
    const counts = { forecasts: own.length, scored: scored.length, hits, voids: ended.length - scored.length };
    const texts = Object.fromEntries(Object.entries({ ...counts, log_loss: loss }).map(([k, v]) => [k, String(v)]));
    return { model: MODEL, feature, ...texts } as AccuracyStatement["rows"][number];
  });
  const score_revision_hash = revision === undefined ? FIRST_PREVIOUS_HASH : "revision";
  return {
    kind: "accuracy",
    table: TABLE,
    cutoff_seq: String(upTo),
    settled_seq: String(upTo),
    revision: "0",
    score_revision_hash,
    rows,
  };
}

/** The strings of rows with their hashes, chained. */
function chained<Row>(
  rows: readonly Row[],
  name: "history_hash" | "hash",
  link: (previous: string, row: Row) => { strings: object; hash: string },
): Record<string, string>[] {
  let previous = FIRST_PREVIOUS_HASH;
  return rows.map((row) => {
    const { strings, hash } = link(previous, row);
    const before = previous;
    previous = hash;
    return { ...strings, prev_hash: before, [name]: hash };
  });
}

type Rows = Record<string, string>[];

/** The exports of a table, and the entries of a log about it. */
function logged(facts: Facts, origin: string): { exports: Record<string, Rows>; entries: string[] } {
  const rounds = chained(facts.rounds, "history_hash", (previous, row) => {
    const strings = historyStrings(row);
    return { strings, hash: historyHash(previous, strings) };
  });
  const historyAt = new Map(rounds.map((row) => [row["round_id"], row["history_hash"] ?? ""]));
  const forecasts = chained(facts.forecasts, "hash", (previous, row) => {
    const strings = forecastStrings({ historyHash: historyAt.get(row.cutoffRoundId) ?? "", ...row });
    return { strings, hash: forecastHash(previous, strings) };
  });
  const scores = chained(facts.scores, "hash", (previous, row) => {
    const strings = scoreStrings(row);
    return { strings, hash: scoreHash(previous, strings) };
  });
  const seqOf = new Map(facts.rounds.map(({ roundId, seq }) => [roundId, seq]));
  const statements: Statement[] = [{ kind: "log", origin, ...facts.log }];
  if (facts.witnesses !== undefined) statements.push({ kind: "witnesses", keys: facts.witnesses });
  for (const [at, upTo] of facts.statedAt.entries()) {
    const forecast = facts.forecasts.findLastIndex(({ cutoffRoundId }) => (seqOf.get(cutoffRoundId) ?? 0n) <= upTo);
    const score = facts.scores.findLastIndex(({ settledSeq }) => settledSeq <= upTo);
    for (let other = 0; other < (facts.others ?? 0); other++)
      statements.push({ kind: "audit", seq: String(statements.length), hash: FIRST_PREVIOUS_HASH });
    const table: TableStatement = {
      kind: "table",
      table: TABLE,
      round_seq: String(upTo),
      history_hash: rounds[upTo - 1]?.["history_hash"] ?? FIRST_PREVIOUS_HASH,
      on_time_rounds: String(facts.rounds.slice(0, upTo).filter(({ late }) => !late).length),
      forecast_seq: String(forecast + 1),
      forecast_hash: forecasts[forecast]?.["hash"] ?? FIRST_PREVIOUS_HASH,
      score_hash: scores[score]?.["hash"] ?? FIRST_PREVIOUS_HASH,
      revision_hash: FIRST_PREVIOUS_HASH,
      calibration: "",
      calibration_hash: "",
    };
    facts.change?.(table);
    statements.push(table);
    if (at === 2 && facts.laterAccuracy !== undefined) {
      const { upTo: laterUpTo, features } = facts.laterAccuracy;
      const later = accuracyOf(facts, laterUpTo);
      statements.push({ ...later, rows: later.rows.filter(({ feature }) => features.includes(feature)) });
    }
    if (at + 1 !== (facts.accuracyAfter ?? 2) || facts.accuracy === null) continue;
    const statement = accuracyOf(facts, upTo);
    const revision = scores.findLast((row) => row["rev"] !== "1")?.["hash"];
    if (statement.score_revision_hash === "revision") statement.score_revision_hash = revision ?? "";
    facts.accuracy(statement);
    statements.push(statement);
  }
  return { exports: { rounds, forecasts, scores }, entries: statements.map(entryOf) };
}

/** A new key of a log. */
export function makeSigner(): Buffer {
  return Buffer.from(generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString());
}

/** A log with a table as it is served. */
export interface MadeRecord {
  origin: string;
  key: string;
  checkpoint: string;
  /** The checkpoint that was signed over fewer entries. */
  checkpointAt(size: number): string;
  body(path: string): { bytes: Buffer; link?: string } | null;
}

/** Makes the record of an operator with this key; `number` is that of the log. */
export function makeRecord(facts: Facts, { pem = makeSigner(), number = 1, rowsPerPage = 5 } = {}): MadeRecord {
  const { publicKey } = signerOf("new", "log", pem.toString());
  const origin = originOf("https://crash.example", publicKey, number);
  const signer: SignerKey = signerOf(origin, "log", pem.toString());
  const { exports, entries } = logged(facts, origin);
  const bytes = entries.map((entry) => Buffer.from(entry));
  const checkpointAt = (size: number) => signCheckpoint({ origin, size, root: mth(bytes.slice(0, size)) }, signer);
  const tiles = growTiles([], bytes.map(leafHash));
  const [key, checkpoint] = [verifierKeyText(signer), checkpointAt(bytes.length)];
  return {
    origin,
    key,
    checkpoint,
    checkpointAt,
    body(path) {
      if (path === "/log/key") return { bytes: Buffer.from(`${key}\n`) };
      if (path === "/log/checkpoint") return { bytes: Buffer.from(checkpoint) };
      const tile = path.startsWith("/log/tile/") ? parseTilePath(path.slice("/log/tile/".length)) : null;
      if (tile !== null) return tile.level === "entries" ? bundleOf(bytes, tile) : hashesOf(tiles, tile);
      const [, kind = "", after = "0"] =
        new RegExp(`^/log/export/(\\w+)/${TABLE}(?:\\?after=(\\d+))?$`).exec(path) ?? [];
      return exports[kind] === undefined
        ? null
        : pageOf(exports[kind], { path: `/log/export/${kind}/${TABLE}`, after: Number(after), limit: rowsPerPage });
    },
  };
}

function bundleOf(entries: readonly Buffer[], { n, width }: TilePath): { bytes: Buffer } | null {
  const bundle = entries.slice(256 * n, 256 * n + width);
  return bundle.length < width ? null : { bytes: bundleBytes(bundle) };
}

/** Entries as a bundle has them, each after its length. */
export function bundleBytes(entries: readonly Buffer[]): Buffer {
  return Buffer.concat(entries.flatMap((entry) => [lengthOf(entry), entry]));
}

function hashesOf(tiles: readonly Tile[], { level, n, width }: TilePath): { bytes: Buffer } | null {
  const hashes = tiles.find((tile) => tile.level === level && tile.n === n)?.hashes;
  return hashes === undefined || hashes.length < 32 * width ? null : { bytes: hashes.subarray(0, 32 * width) };
}

function lengthOf(entry: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(entry.length);
  return length;
}

/** A page of an export; as on a server an empty page is the last one. */
function pageOf(
  rows: Rows,
  { path, after, limit }: { path: string; after: number; limit: number },
): { bytes: Buffer; link?: string } {
  const page = rows.slice(after, after + limit);
  const columns = Object.keys(rows[0] ?? {});
  const lines = [columns, ...page.map((row) => columns.map((column) => row[column] ?? ""))].map((row) => row.join(","));
  const next = page.length === 0 ? {} : { link: `<${path}?after=${after + page.length}>; rel="next"` };
  return { bytes: Buffer.from(`${lines.join("\n")}\n`), ...next };
}

/** Sends a response of its own, and returns true; false for that of the record. */
export type Hook = (request: IncomingMessage, response: ServerResponse) => boolean;

/** The result of the script; null if there is no Python. */
export interface Checked {
  code: number;
  stdout: string;
  stderr: string;
  /** The most memory of its objects, if it was measured. */
  kilobytes: number;
}

/** Runs the verifier against a record. */
export async function checkRecord(
  record: MadeRecord,
  { options = [], hook = () => false, ...runOptions }: { options?: readonly string[]; hook?: Hook } & RunOptions = {},
): Promise<Checked | null> {
  const server = createServer((request, response) => {
    if (hook(request, response)) return;
    const found = record.body(request.url ?? "");
    if (found?.link !== undefined) response.setHeader("Link", found.link);
    response.writeHead(found === null ? 404 : 200).end(found?.bytes);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await runScript(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, options, runOptions);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** How the script is run: whether its memory is measured, and constants of it that have another value. */
interface RunOptions {
  isMeasured?: boolean;
  constants?: Readonly<Record<string, number>>;
}

/** Runs the verifier with an address and options. */
export async function runScript(
  url: string,
  options: readonly string[] = [],
  { isMeasured = false, constants = {} }: RunOptions = {},
): Promise<Checked | null> {
  const lines = Object.entries(constants).map(([name, value]) => `${name} = ${value}`);
  const env = { ...process.env, SET: lines.join("\n"), ...(isMeasured ? { MEASURED: "1" } : {}) };
  try {
    const { stdout, stderr } = await run("python3", ["-c", QUICK, SCRIPT, url, ...options], { timeout: 60_000, env });
    return { code: 0, stdout, stderr, kilobytes: Number(/^kilobytes (\d+)$/m.exec(stdout)?.[1]) };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number | string | null; stdout: string; stderr: string };
    if (code === null) throw error; // it was ended, since it took too long
    return code === "ENOENT" ? null : { code: Number(code), stdout, stderr, kilobytes: Number.NaN };
  }
}
