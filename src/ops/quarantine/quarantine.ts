import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import { decideOnItems, MOST_ITEMS, RELEASABLE } from "../../corrections/quarantine-decisions.ts";
import { countItems, findItem, listItems } from "../../rounds/lists/quarantine-list-store.ts";
import { auditEntry } from "../audit-entry.ts";
import { opsAction, opsPage } from "../contract.ts";
import {
  choose,
  cursorText,
  excerptOf,
  idOf,
  idsOf,
  indented,
  listing,
  pageOf,
  PER_PAGE,
  readCursor,
  reason,
  tellReaders,
} from "../payloads/listing.ts";
import { itemReason } from "./reason.ts";

const listQuery = z.object({
  ...listing,
  state: z.enum(["", "open", "released", "discarded"]).default("open"),
  code: z.string().trim().max(60).default(""),
  sort: z.enum(["newest", "oldest"]).default("newest"),
});

/** Quarantined items, each with its reason. */
export const quarantinePage = opsPage({
  path: "/quarantine",
  nav: { label: "Quarantine", order: 21, group: "Data" },
  query: listQuery,
  async show({ sql }, { query }) {
    const { tableIds, problem } = await choose(sql, query.of);
    const cursor = readCursor(query.after);
    const filter = {
      tableIds,
      state: query.state === "" ? null : query.state,
      code: query.code === "" ? null : query.code,
    };
    const [found, counts] = await Promise.all([
      listItems(sql, filter, {
        after: cursor === null ? null : { lastSeenAt: cursor.at, id: cursor.id },
        oldestFirst: query.sort === "oldest",
        limit: PER_PAGE + 1,
      }),
      countItems(sql, tableIds),
    ]);
    const { rows, next } = pageOf(found, ({ lastSeenAt, id }) => cursorText(lastSeenAt, id));
    const items = rows.map((row) => ({ ...row, item: excerptOf(row.item), why: itemReason(row.code, row.reason) }));
    const data = { rows: items, counts, next, perPage: PER_PAGE, query, problem };
    return { template: "quarantine/quarantine", title: "Quarantine", data };
  },
});

/** One quarantined item as received, and why. */
export const itemPage = opsPage({
  path: "/quarantine/:id",
  async show({ sql }, { params }) {
    const id = idOf(params["id"]);
    const item = id === null ? null : await findItem(sql, id);
    if (item === null) return null;
    const crumbs = [{ label: "Quarantine", href: "/ops/quarantine" }];
    const data = {
      item: { ...item, item: indented(item.item), why: itemReason(item.code, item.reason) },
      canRelease: RELEASABLE.has(item.code),
    };
    return { template: "quarantine/item", title: `Item ${item.id}`, data, crumbs };
  },
});

const ids = idsOf(MOST_ITEMS, "select at least one item");
const form = z.object({ ids, state: z.enum(["released", "discarded"]), reason });

/** Discards items, or releases those that the next re-read stores. */
export const decideItemsAction = opsAction({
  name: "quarantine.decide",
  path: "/quarantine/decide",
  roles: ["operator"],
  isDangerous: false,
  form,
  async run(parts, { visitor, form: given }) {
    const outcome = await parts.sql.begin(async (tx) => {
      const done = await decideOnItems(tx, given.ids, { state: given.state, by: visitor.email, reason: given.reason });
      if (!done.ok) return done;
      const entry = {
        action: given.state === "released" ? "quarantine.release" : "quarantine.discard",
        target: `items ${given.ids.join(", ")} of ${done.tables.join(", ")}`,
        before: "open",
        after: given.state,
        reason: given.reason,
      };
      await appendAudit(tx, auditEntry(visitor, entry));
      return done;
    });
    if (!outcome.ok) return outcome;
    await tellReaders(parts);
    const count = outcome.ids.length;
    const message = `${count === 1 ? "1 item" : `${count} items`} ${given.state}`;
    return { ok: true, message, location: "/ops/quarantine" };
  },
});
