import { z } from "zod";
import { NOTICE_ORDER } from "../../rounds/notices/notices.ts";
import { endNotice, LONGEST_NOTICE, writeNotice } from "../../corrections/operator-notice.ts";
import { listNotices } from "../../corrections/operator-notice-store.ts";
import { findTablesOf } from "../../rounds/lists/table-filter-store.ts";
import { auditedAction } from "../audited-action.ts";
import { opsPage } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";
import { choose, listing, pageOf, PER_PAGE, reason } from "../payloads/listing.ts";

const listQuery = z.object({
  ...listing,
  state: z.enum(["", "open", "ended"]).default("open"),
  kind: z.enum(["", ...NOTICE_ORDER]).default(""),
  sort: z.enum(["newest", "oldest"]).default("newest"),
});

/** Notices to callers about tables. */
export const noticesPage = opsPage({
  path: "/notices",
  nav: { label: "Notices", order: 24, group: "Data" },
  query: listQuery,
  async show({ sql }, { query }) {
    const { tableIds, problem } = await choose(sql, query.of);
    const isOpen = query.state === "" ? null : query.state === "open";
    const found = await listNotices(
      sql,
      { tableIds, kind: query.kind === "" ? null : query.kind, isOpen },
      { after: idOf(query.after), oldestFirst: query.sort === "oldest", limit: PER_PAGE + 1 },
    );
    const { rows, next } = pageOf(found, (row) => String(row.id));
    const data = { rows, next, perPage: PER_PAGE, query, problem, kinds: NOTICE_ORDER, longest: LONGEST_NOTICE };
    return { template: "notices/notices", title: "Notices", data };
  },
});

const of = z.string().trim().min(1, "expected a house, or house/game/market").max(200);
const writing = z.object({ of, text: z.string().trim().min(1).max(LONGEST_NOTICE), reason });

/** Publishes a notice about a table, or about all tables of a house. */
export const writeNoticeAction = auditedAction({
  name: "notice.write",
  path: "/notices/write",
  roles: ["operator"],
  isDangerous: false,
  form: writing,
  isPublished: true,
  location: () => "/ops/notices?kind=operator",
  async change(tx, { visitor, form: given }) {
    const choice = await findTablesOf(tx, given.of);
    if (choice === null) return { ok: false, problem: `there is no house or table ${given.of}` };
    return writeNotice(tx, choice.ids, { text: given.text, by: visitor.email });
  },
});

const ending = z.object({ of, reason });

/** Closes an operator's notice of a table. */
export const endNoticeAction = auditedAction({
  name: "notice.end",
  path: "/notices/end",
  roles: ["operator"],
  isDangerous: false,
  form: ending,
  isPublished: true,
  location: () => "/ops/notices",
  async change(tx, { visitor, form: given }) {
    const choice = given.of.includes("/") ? await findTablesOf(tx, given.of) : null;
    const tableId = choice?.ids[0];
    if (tableId === undefined) return { ok: false, problem: `there is no table ${given.of}` };
    return endNotice(tx, tableId, { by: visitor.email });
  },
});
