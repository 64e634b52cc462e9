import { z } from "zod";
import { parseMultiplier } from "../../houses/reading/multiplier.ts";
import { reviseRound, resultText } from "../../corrections/revision.ts";
import { findStanding, listRevisions } from "../../corrections/revision-store.ts";
import { findTablesOf } from "../../rounds/lists/table-filter-store.ts";
import { auditedAction } from "../audited-action.ts";
import { opsPage } from "../contract.ts";
import { reason } from "../payloads/listing.ts";

const MOST_REVISIONS = 100;

const table = z.string().trim().max(200);
const round = z.string().trim().max(128);
const query = z.object({ table: table.default(""), round: round.default("") });

/** One round with its current result and earlier decisions, to be corrected manually. */
export const reviseRoundPage = opsPage({
  path: "/conflicts/revise",
  query,
  async show({ sql }, { query: given }) {
    const crumbs = [{ label: "Conflicts", href: "/ops/conflicts" }];
    const tableId = await findOne(sql, given.table);
    const [standing, revisions] = await Promise.all([
      tableId === null || given.round === "" ? null : findStanding(sql, tableId, given.round),
      listRevisions(sql, { tableId, roundId: given.round === "" ? null : given.round, limit: MOST_REVISIONS }),
    ]);
    const problem =
      given.table !== "" && tableId === null
        ? `there is no table ${given.table}; expected house/game/market`
        : given.round !== "" && standing === null
          ? `there is no round ${given.round} there`
          : null;
    const data = { query: given, standing, revisions, problem, resultText };
    return { template: "conflicts/revise", title: "Correct a round", data, crumbs };
  },
});

const form = z.object({
  table,
  round,
  /** The result when the form was loaded: a later decision must be seen first. */
  seen: z.string().max(40),
  to: z
    .string()
    .trim()
    .max(40)
    .transform((text, context): bigint | null => {
      if (text === "void") return null;
      const read = parseMultiplier(text, { scale: 1, instant: [] });
      if (read.ok) return BigInt(read.hundredths);
      context.addIssue(read.reason);
      return z.NEVER;
    }),
  reason,
});

/** Corrects the result of a round, or declares it void. */
export const reviseRoundAction = auditedAction({
  name: "round.revise",
  title: "Revise round",
  path: "/conflicts/revise",
  roles: ["operator"],
  isDangerous: true,
  form,
  isPublished: true,
  location: ({ form: { table: of, round: id } }) =>
    `/ops/conflicts/revise?${new URLSearchParams({ table: of, round: id }).toString()}`,
  async change(tx, { visitor, form: { table: name, round: roundId, ...given } }) {
    const tableId = await findOne(tx, name);
    if (tableId === null) return { ok: false, problem: `there is no table ${name}` };
    return reviseRound(tx, { tableId, roundId }, { ...given, by: visitor.email });
  },
});

async function findOne(sql: Parameters<typeof findTablesOf>[0], name: string): Promise<number | null> {
  if (name.split("/").length !== 3) return null;
  return (await findTablesOf(sql, name))?.ids[0] ?? null;
}
