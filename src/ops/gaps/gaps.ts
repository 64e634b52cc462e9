import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import type { Transaction } from "../../db/client.ts";
import { giveUpGap, openGapAgain, type GapOutcome } from "../../corrections/close-gap.ts";
import { countGaps, listGaps } from "../../rounds/gaps/gap-list-store.ts";
import { MOST_ATTEMPTS } from "../../backfill/gap-plan.ts";
import { auditEntry } from "../audit-entry.ts";
import { type Done, opsAction, opsPage, type OpsParts, type Sent } from "../contract.ts";
import { choose, idOf, listing, pageOf, PER_PAGE, reason, tellReaders } from "../payloads/listing.ts";

const listQuery = z.object({
  ...listing,
  state: z.enum(["", "open", "filled", "given_up"]).default("open"),
  sort: z.enum(["newest", "oldest"]).default("newest"),
});

/** Rounds that are missing, what was tried for them, and when it is tried next. */
export const gapsPage = opsPage({
  path: "/gaps",
  nav: { label: "Gaps", order: 23, group: "Data" },
  query: listQuery,
  async show({ sql }, { query }) {
    const { tableIds, problem } = await choose(sql, query.of);
    const filter = { tableIds, state: query.state === "" ? null : query.state };
    const [found, counts] = await Promise.all([
      listGaps(sql, filter, {
        after: idOf(query.after),
        oldestFirst: query.sort === "oldest",
        limit: PER_PAGE + 1,
      }),
      countGaps(sql, filter),
    ]);
    const { rows, next } = pageOf(found, (row) => String(row.id));
    const data = { rows, counts, next, perPage: PER_PAGE, query, problem, mostAttempts: MOST_ATTEMPTS };
    return { template: "gaps/gaps", title: "Gaps", data, refreshSeconds: 10 };
  },
});

const form = z.object({ reason });
type Form = z.infer<typeof form>;

const roles = ["operator"] as const;

/** Closes an open gap manually. */
export const closeGapAction = opsAction({
  name: "gap.close",
  path: "/gaps/:id/close",
  roles,
  isDangerous: false,
  form,
  run: (parts, sent) =>
    act(parts, sent, "gap.close", (tx, id) => giveUpGap(tx, id, { by: sent.visitor.email, reason: sent.form.reason })),
});

/** Opens a gap again that was given up. */
export const openGapAction = opsAction({
  name: "gap.open",
  path: "/gaps/:id/open",
  roles,
  isDangerous: false,
  form,
  run: (parts, sent) => act(parts, sent, "gap.open", openGapAgain),
});

async function act(
  parts: OpsParts,
  { visitor, params, form: given }: Sent<Form>,
  action: string,
  work: (tx: Transaction, id: bigint) => Promise<GapOutcome>,
): Promise<Done> {
  const id = idOf(params["id"]);
  if (id === null) return { ok: false, problem: "expected the id of a gap" };
  const outcome = await parts.sql.begin(async (tx) => {
    const done = await work(tx, id);
    if (!done.ok) return done;
    const { table, before, after } = done;
    const entry = { action, target: `gap ${id} of ${table}`, before, after, reason: given.reason };
    await appendAudit(tx, auditEntry(visitor, entry));
    return done;
  });
  if (!outcome.ok) return outcome;
  await tellReaders(parts);
  const { state } = outcome.after;
  const message = `gap ${id} of ${outcome.table} is ${state === "open" ? "open again" : "given up"}`;
  return { ok: true, message, location: `/ops/gaps?state=${state}` };
}
