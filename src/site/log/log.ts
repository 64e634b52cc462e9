import type { ServerResponse } from "node:http";
import type { Express, Response } from "express";
import { clientGone } from "../../http/client-gone.ts";
import { ApiError } from "../../http/errors.ts";
import { urlOf } from "../../http/request.ts";
import { resource } from "../../http/resource.ts";
import { networksOf } from "../../limits/address.ts";
import { within } from "../../within.ts";
import type { Sql, Transaction } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { findNewestCheckpoint, listEntries, listLogs } from "../../record/log/log-store.ts";
import { keyOf } from "../../record/log/verify-log.ts";
import { verifierKeyText } from "../../signed-note.ts";
import { findTile } from "../../record/log/tiles-store.ts";
import { PUBLIC_EXPORTS } from "../../record/log/public-export.ts";
import { findPublicTable } from "../../record/log/public-export-store.ts";
import { type TilePath, parseTilePath } from "../../record/log/tile-path.ts";
import { PART_TIMEOUT_MS } from "../loader.ts";
import { readBriefly } from "../site-store.ts";

/** Concurrent statements: the log is read without a key. A network (a site of IPv6) gets half of them: others read too. */
const AT_ONCE = 4;
const OF_ONE_NETWORK = 2;

/**
 * Adds the transparency log as C2SP tlog-tiles: `/log/checkpoint`, `/log/tile/…`, `/log/tile/entries/…` and `/log/key`
 * (the verifier key), and `/log/export/<rounds, forecasts or scores>/<house>/<game>/<market>`, the logged data as CSV
 * in pages. Everything is read from PostgreSQL, at most four requests at a time, and two of one network; more get a 503.
 */
export function addLog(app: Express, sql: Sql, log: Log): void {
  const readers: string[] = []; // by network
  async function read<Value>(response: Response, load: (tx: Transaction) => Promise<Value>): Promise<Value> {
    const network = networksOf(response.req.ip ?? "").at(-1)?.network ?? "";
    const isFull = readers.length >= AT_ONCE || readers.filter((one) => one === network).length >= OF_ONE_NETWORK;
    if (isFull) throw unavailable();
    readers.push(network);
    const gone = clientGone(response);
    const reading = readBriefly(sql.until(gone), load);
    void reading.catch(() => undefined).finally(() => readers.splice(readers.indexOf(network), 1));
    try {
      return await within(PART_TIMEOUT_MS, "PostgreSQL", reading);
    } catch (error) {
      gone.throwIfAborted();
      log.warn(`the transparency log is not served: ${reasonOf(error)}`);
      throw unavailable();
    }
  }

  resource(app, "/log/checkpoint", async (_, response) => {
    const checkpoint = await read(response, async (tx) => {
      const [newest] = await listLogs(tx);
      return newest === undefined ? null : findNewestCheckpoint(tx, newest.id);
    });
    if (checkpoint === null) throw missing("no checkpoint is signed yet: the first follows within a minute");
    sendBytes(response, "text/plain; charset=utf-8", Buffer.from(checkpoint.note));
  });
  resource(app, "/log/key", async (_, response) => {
    const [newest] = await read(response, listLogs);
    if (newest === undefined) throw missing("no log is begun yet: the first worker begins it");
    sendBytes(response, "text/plain; charset=utf-8", Buffer.from(`${verifierKeyText(keyOf(newest))}\n`));
  });
  resource(app, "/log/tile/{*path}", async (request, response) => {
    const path = parseTilePath(urlOf(request).path.slice("/log/tile/".length));
    const bytes = path === null ? null : await read(response, (tx) => readTileBytes(tx, path));
    if (bytes === null) throw missing("there is no such tile (yet): /log/checkpoint has the size of the log");
    sendBytes(response, "application/octet-stream", bytes);
  });
  resource(app, "/log/export/:kind/:house/:game/:market", async (request, response) => {
    const { path, query } = urlOf(request);
    const [kind = "", ...table] = path.slice("/log/export/".length).split("/");
    const readPage = Object.hasOwn(PUBLIC_EXPORTS, kind) ? PUBLIC_EXPORTS[kind] : undefined;
    const page = await read(response, async (tx) => {
      const tableId = await findPublicTable(tx, table.join("/"));
      return tableId === null ? null : ((await readPage?.(tx, tableId, query.get("after") ?? "0")) ?? null);
    });
    if (page === null)
      throw missing("expected rounds, forecasts or scores of a table, and `after` as the page before gives it");
    if (page.next !== null) response.setHeader("Link", `<${path}?after=${page.next}>; rel="next"`);
    sendBytes(response, "text/csv; charset=utf-8", Buffer.from(page.csv));
  });
}

async function readTileBytes(tx: Transaction, { level, n, width }: TilePath): Promise<Buffer | null> {
  const [newest] = await listLogs(tx);
  if (newest === undefined) return null;
  if (level !== "entries") {
    const hashes = await findTile(tx, newest.id, level, n);
    return hashes === null || hashes.length < width * 32 ? null : hashes.subarray(0, width * 32);
  }
  const entries = await listEntries(tx, newest.id, n * 256, width);
  if (entries.length < width) return null;
  return Buffer.concat(
    entries.flatMap((entry) => {
      const bytes = Buffer.from(entry);
      const length = Buffer.alloc(2);
      length.writeUInt16BE(bytes.length);
      return [length, bytes];
    }),
  );
}

/** Nothing is cached: the same paths serve another log once one is declared. */
function sendBytes(response: ServerResponse, type: string, bytes: Buffer): void {
  response.setHeader("Content-Type", type);
  response.setHeader("Cache-Control", "no-cache");
  response.setHeader("Content-Length", bytes.length);
  response.end(response.req.method === "HEAD" ? undefined : bytes);
}

function missing(message: string): ApiError {
  return new ApiError("not_found", { message });
}

function unavailable(): ApiError {
  return new ApiError("temporarily_unavailable", { headers: { "Retry-After": "5" } });
}
