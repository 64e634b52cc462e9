import { z } from "zod";
import { decideOnItems, MOST_ITEMS, QUARANTINE_ACTIONS, RELEASABLE } from "../../corrections/quarantine-decisions.ts";
import { countItems, findItem, listItems } from "../../rounds/lists/quarantine-list-store.ts";
import { auditedAction } from "../audited-action.ts";
import { indented } from "../../frame/text/indented.ts";
import { opsPage } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";
import {
  choose,
  cursorText,
  excerptOf,
  idsOf,
  listing,
  pageOf,
  PER_PAGE,
  readCursor,
  reason,
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
export const decideItemsAction = auditedAction({
  name: "quarantine.decide",
  path: "/quarantine/decide",
  roles: ["operator"],
  isDangerous: false,
  form,
  isPublished: true,
  location: () => "/ops/quarantine",
  async change(tx, { visitor, form: { ids: chosen, state, reason: why } }) {
    const done = await decideOnItems(tx, chosen, { state, by: visitor.email, reason: why });
    return done.ok ? { ...done, action: QUARANTINE_ACTIONS[state] } : done;
  },
});
