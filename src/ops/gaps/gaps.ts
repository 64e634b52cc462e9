import { z } from "zod";
import { giveUpGap, openGapAgain } from "../../corrections/close-gap.ts";
import { countGaps, listGaps } from "../../rounds/gaps/gap-list-store.ts";
import { MOST_ATTEMPTS } from "../../backfill/gap-plan.ts";
import { auditedAction } from "../audited-action.ts";
import { opsPage } from "../contract.ts";
import { idOf, requireId } from "../../frame/path-id.ts";
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

const decision = { roles: ["operator"], isDangerous: false, form: z.object({ reason }), isPublished: true } as const;

/** Closes an open gap manually. */
export const closeGapAction = auditedAction({
  ...decision,
  name: "gap.close",
  path: "/gaps/:id/close",
  location: () => "/ops/gaps?state=given_up",
  change: (tx, { visitor, params, form }) =>
    giveUpGap(tx, requireId(params["id"]), { by: visitor.email, reason: form.reason }),
});

/** Opens a gap again that was given up. */
export const openGapAction = auditedAction({
  ...decision,
  name: "gap.open",
  path: "/gaps/:id/open",
  location: () => "/ops/gaps?state=open",
  change: (tx, { params }) => openGapAgain(tx, requireId(params["id"])),
});
