import { z } from "zod";
import { giveUpGap, openGapAgain, type GapOutcome } from "../../corrections/close-gap.ts";
import { countGaps, listGaps } from "../../rounds/gaps/gap-list-store.ts";
import { MOST_ATTEMPTS } from "../../backfill/gap-plan.ts";
import { auditedAction, type Change } from "../audited-action.ts";
import { opsPage } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";
import { choose, listing, pageOf, PER_PAGE, reason } from "../payloads/listing.ts";

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
const roles = ["operator"] as const;

/** Closes an open gap manually. */
export const closeGapAction = auditedAction({
  name: "gap.close",
  path: "/gaps/:id/close",
  roles,
  isDangerous: false,
  form,
  isPublished: true,
  change: (tx, { visitor, params, form: given }) =>
    changeGap(params["id"], (id) => giveUpGap(tx, id, { by: visitor.email, reason: given.reason })),
});

/** Opens a gap again that was given up. */
export const openGapAction = auditedAction({
  name: "gap.open",
  path: "/gaps/:id/open",
  roles,
  isDangerous: false,
  form,
  isPublished: true,
  change: (tx, { params }) => changeGap(params["id"], (id) => openGapAgain(tx, id)),
});

async function changeGap(text: string | undefined, work: (id: bigint) => Promise<GapOutcome>): Promise<Change> {
  const id = idOf(text);
  if (id === null) return { ok: false, problem: "expected the id of a gap" };
  const done = await work(id);
  if (!done.ok) return done;
  const { table, before, after } = done;
  const target = `gap ${id} of ${table}`;
  const message = `${target} is ${after.state === "open" ? "open again" : "given up"}`;
  return { ok: true, target, before, after, message, location: `/ops/gaps?state=${after.state}` };
}
