import { z } from "zod";
import { countTouched, findListedConflict, listConflicts } from "../../rounds/lists/conflict-list-store.ts";
import { decideConflict, resultText, type Revised, type Voided } from "../../corrections/revision.ts";
import { findStanding, listRevisions } from "../../corrections/revision-store.ts";
import { auditedAction } from "../audited-action.ts";
import { opsPage } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";
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
  async change(tx, { visitor, params, form: given }) {
    const id = idOf(params["id"]);
    if (id === null) return { ok: false, problem: "expected the id of a conflict" };
    const done = await decideConflict(tx, id, { take: given.take, by: visitor.email, reason: given.reason });
    if (!done.ok) return done;
    const { roundId, table, from, to } = done.revised;
    return {
      ok: true,
      target: `conflict ${id}: round ${roundId} of ${table}`,
      before: resultText(from),
      after: resultText(to),
      message: decidedText([done.revised], done),
      location: `/ops/conflicts/${id}`,
    };
  },
});

/** The result of decisions as text. */
export function decidedText(decided: readonly Revised[], { voided, windows }: Voided): string {
  const touched = `${voided} scored forecasts became void, ${windows} of them windows`;
  const [only] = decided;
  return decided.length === 1 && only !== undefined ? `${decisionText(only)}; ${touched}` : touched;
}

function decisionText({ roundId, table, from, to }: Revised): string {
  const what =
    from === to ? `stays ${resultText(to)}` : `is ${resultText(to)} now, not ${resultText(from)}, in manual runs`;
  return `round ${roundId} of ${table} ${what}`;
}
