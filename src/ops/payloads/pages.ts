import { z } from "zod";
import { isUtcTime } from "../../iso-time.ts";
import { listConflictsOf } from "../../rounds/lists/conflict-list-store.ts";
import {
  findPayload,
  listBroughtRounds,
  listPayloads,
  listServedTables,
  type PayloadKey,
} from "../../rounds/lists/payload-list-store.ts";
import { listItemsOf } from "../../rounds/lists/quarantine-list-store.ts";
import { opsPage } from "../contract.ts";
import { bodyFile, showBody } from "./body.ts";
import { choose, cursorText, listing, pageOf, PER_PAGE, readCursor, time } from "./listing.ts";

const MOST_SHOWN = 200;

const listQuery = z.object({
  ...listing,
  state: z.enum(["", "unread", "read", "refused"]).default(""),
  from: time,
  to: time,
  sort: z.enum(["newest", "oldest"]).default("newest"),
});

/** Stored payloads, with those that are kept after their day has expired. */
export const payloadsPage = opsPage({
  path: "/payloads",
  nav: { label: "Payloads", order: 20, group: "Data" },
  query: listQuery,
  async show({ sql }, { query }) {
    const { tableIds, problem } = await choose(sql, query.of);
    const cursor = readCursor(query.after);
    const filter = { tableIds, state: query.state === "" ? null : query.state, from: query.from, to: query.to };
    const found = await listPayloads(sql, filter, {
      after: cursor === null ? null : { receivedAt: cursor.at, tableId: Number(cursor.id) },
      oldestFirst: query.sort === "oldest",
      limit: PER_PAGE + 1,
    });
    const { rows, next } = pageOf(found, ({ receivedAt, tableId }) => cursorText(receivedAt, BigInt(tableId)));
    const data = { rows, next, perPage: PER_PAGE, query, problem };
    return { template: "payloads/payloads", title: "Payloads", data };
  },
});

const crumbs = [{ label: "Payloads", href: "/ops/payloads" }];

/** The payload that a path names; null if it can be none. */
function keyOf({ table = "", at = "" }: Readonly<Record<string, string>>): PayloadKey | null {
  return isUtcTime(at) && /^\d{1,9}$/.test(table) ? { tableId: Number(table), receivedAt: at } : null;
}

/** One payload: what was requested, what was received, and what was read from it. */
export const payloadPage = opsPage({
  path: "/payloads/:table/:at",
  async show({ sql }, { params }) {
    const key = keyOf(params);
    const payload = key === null ? null : await findPayload(sql, key);
    if (payload === null) return null;
    const { body, ...facts } = payload;
    const [served, rounds, items, conflicts] = await Promise.all([
      listServedTables(sql, payload, MOST_SHOWN),
      listBroughtRounds(sql, payload, MOST_SHOWN + 1),
      listItemsOf(sql, payload, MOST_SHOWN + 1),
      listConflictsOf(sql, payload, MOST_SHOWN + 1),
    ]);
    const around = aroundOf(payload.requestedAt);
    const data = { payload: facts, body: showBody(body), served, rounds, items, conflicts, most: MOST_SHOWN, around };
    return {
      template: "payloads/payload",
      title: `Payload of ${payload.receivedAt.slice(0, 19).replace("T", " ")}Z`,
      data,
      crumbs,
    };
  },
});

/** The minute of a payload, to reread it with its neighbors. */
function aroundOf(requestedAt: string): { from: string; to: string } {
  const at = new Date(requestedAt).getTime();
  const minute = at - (at % 60_000);
  return { from: new Date(minute).toISOString(), to: new Date(minute + 60_000).toISOString() };
}

/** The whole body of a payload as a file. */
export const payloadFile = opsPage({
  path: "/payloads/:table/:at/body",
  async show({ sql }, { params }) {
    const key = keyOf(params);
    const payload = key === null ? null : await findPayload(sql, key);
    return payload === null ? null : bodyFile(payload.body, payload.receivedAt);
  },
});
