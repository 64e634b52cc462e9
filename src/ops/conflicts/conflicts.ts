import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import { countTouched, findListedConflict, listConflicts } from "../../rounds/lists/conflict-list-store.ts";
import { decideConflict, resultText, type Revised, type Voided } from "../../corrections/revision.ts";
import { findStanding, listRevisions } from "../../corrections/revision-store.ts";
import { auditEntry } from "../audit-entry.ts";
import { opsAction, opsPage, type OpsParts } from "../contract.ts";
import { choose, idOf, listing, pageOf, PER_PAGE, reason, tellReaders } from "../payloads/listing.ts";

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
export const decideConflictAction = opsAction({
  name: "conflict.decide",
  path: "/conflicts/:id/decide",
  roles: ["operator"],
  isDangerous: false,
  form,
  async run(parts, { visitor, params, form: given }) {
    const id = idOf(params["id"]);
    if (id === null) return { ok: false, problem: "expected the id of a conflict" };
    const outcome = await parts.sql.begin(async (tx) => {
      const done = await decideConflict(tx, id, { take: given.take, by: visitor.email, reason: given.reason });
      if (!done.ok) return done;
      const { roundId, table, from, to } = done.revised;
      await appendAudit(
        tx,
        auditEntry(visitor, {
          action: "conflict.decide",
          target: `conflict ${id}: round ${roundId} of ${table}`,
          before: resultText(from),
          after: resultText(to),
          reason: given.reason,
        }),
      );
      return done;
    });
    if (!outcome.ok) return outcome;
    return {
      ok: true,
      message: await tellDecided(parts, [outcome.revised], outcome),
      location: `/ops/conflicts/${id}`,
    };
  },
});

/** Notifies the API processes of decisions, and returns their result as text. */
export async function tellDecided(
  parts: OpsParts,
  decided: readonly Revised[],
  { voided, windows }: Voided,
): Promise<string> {
  const touched = `${voided} scored forecasts became void, ${windows} of them windows`;
  await tellReaders(parts);
  const [only] = decided;
  return decided.length === 1 && only !== undefined ? `${decisionText(only)}; ${touched}` : touched;
}

function decisionText({ roundId, table, from, to }: Revised): string {
  const what =
    from === to ? `stays ${resultText(to)}` : `is ${resultText(to)} now, not ${resultText(from)}, in manual runs`;
  return `round ${roundId} of ${table} ${what}`;
}
