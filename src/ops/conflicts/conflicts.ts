import { z } from "zod";
import { countTouched, findListedConflict, listConflicts } from "../../rounds/lists/conflict-list-store.ts";
import { decideConflict, resultText } from "../../corrections/revision.ts";
import { findStanding, listRevisions } from "../../corrections/revision-store.ts";
import { auditedAction } from "../audited-action.ts";
import { opsPage } from "../contract.ts";
import { idOf, requireId } from "../../frame/path-id.ts";
import { choose, listing, pageOf, PER_PAGE, reason } from "../payloads/listing.ts";

const MOST_REVISIONS = 50;

const listQuery = z.object({
  ...listing,
  state: z.enum(["", "open", "decided"]).default("open"),
  sort: z.enum(["newest", "oldest"]).default("newest"),
});

/** Rounds that came with two results. */
export const conflictsPage = opsPage({
  path: "/conflicts",
  nav: { label: "Conflicts", order: 22, group: "Data" },
  query: listQuery,
  async show({ sql }, { query }) {
    const { tableIds, problem } = await choose(sql, query.of);
    const isDecided = query.state === "" ? null : query.state === "decided";
    const found = await listConflicts(
      sql,
      { tableIds, isDecided },
      { after: idOf(query.after), oldestFirst: query.sort === "oldest", limit: PER_PAGE + 1 },
    );
    const { rows, next } = pageOf(found, (row) => String(row.id));
    const data = { rows, next, perPage: PER_PAGE, query, problem, resultText };
    return { template: "conflicts/conflicts", title: "Conflicts", data };
  },
});

/** Both results of a round, the payloads they were read from, and what a decision would change. */
export const conflictPage = opsPage({
  path: "/conflicts/:id",
  async show({ sql }, { params }) {
    const id = idOf(params["id"]);
    const conflict = id === null ? null : await findListedConflict(sql, id);
    if (conflict === null) return null;
    const { tableId, roundId, seq } = conflict;
    const [standing, revisions, touched] = await Promise.all([
      findStanding(sql, tableId, roundId),
      listRevisions(sql, { tableId, roundId, limit: MOST_REVISIONS }),
      seq === null ? null : countTouched(sql, { tableId, seq }),
    ]);
    const crumbs = [{ label: "Conflicts", href: "/ops/conflicts" }];
    const data = { conflict, standing, revisions, touched, resultText };
    return { template: "conflicts/conflict", title: `Conflict ${conflict.id}`, data, crumbs };
  },
});

const form = z.object({ take: z.enum(["kept", "other"]), reason });

/** Decides which result of a round is right. */
export const decideConflictAction = auditedAction({
  name: "conflict.decide",
  path: "/conflicts/:id/decide",
  roles: ["operator"],
  isDangerous: false,
  form,
  isPublished: true,
  location: ({ params }) => `/ops/conflicts/${params["id"]}`,
  change: (tx, { visitor, params, form: given }) =>
    decideConflict(tx, requireId(params["id"]), { ...given, by: visitor.email }),
});
