import { z } from "zod";
import { listConflicts, listConflictsById } from "../../rounds/lists/conflict-list-store.ts";
import { decideConflicts, MOST_CONFLICTS, resultText } from "../../corrections/revision.ts";
import { auditedAction } from "../audited-action.ts";
import { opsPage } from "../contract.ts";
import { choose, idsOf, reason } from "../payloads/listing.ts";

const ids = idsOf(MOST_CONFLICTS, "choose at least one conflict");
const query = z.object({
  ids: ids.optional(),
  /** All open ones of a house or a table instead, the oldest first. */
  of: z.string().trim().max(200).default(""),
});

/** Conflicts that were chosen, both results of each and how many they are, before they are decided in the same way. */
export const decideConflictsPage = opsPage({
  path: "/conflicts/decide",
  query,
  async show({ sql }, { query: given }) {
    const crumbs = [{ label: "Conflicts", href: "/ops/conflicts" }];
    const page = (data: object) => ({
      template: "conflicts/decide-selected",
      title: "Decide several conflicts",
      crumbs,
      data,
    });
    const nothing = { open: [], decided: 0, isMore: false, resultText };
    if (given.ids === undefined && given.of === "") {
      return page({ ...nothing, problem: "choose at least one conflict in the list" });
    }
    const { tableIds, problem } = await choose(sql, given.of);
    if (problem !== null) return page({ ...nothing, problem });
    const found =
      given.ids === undefined
        ? await listConflicts(
            sql,
            { tableIds, isDecided: false },
            { after: null, oldestFirst: true, limit: MOST_CONFLICTS + 1 },
          )
        : await listConflictsById(sql, given.ids);
    const open = found.filter(({ decidedAt }) => decidedAt === null);
    return page({
      open: open.slice(0, MOST_CONFLICTS),
      decided: found.length - open.length,
      isMore: open.length > MOST_CONFLICTS,
      problem: open.length === 0 ? "none of them is open" : null,
      resultText,
    });
  },
});

const form = z.object({ ids, take: z.enum(["kept", "other"]), reason });

/** Decides several conflicts in the same way, all of them or none. */
export const decideConflictsAction = auditedAction({
  name: "conflict.decide",
  path: "/conflicts/decide",
  roles: ["operator"],
  isDangerous: false,
  form,
  isPublished: true,
  location: () => "/ops/conflicts?state=decided",
  change: (tx, { visitor, form: { ids: chosen, ...given } }) =>
    decideConflicts(tx, chosen, { ...given, by: visitor.email }),
});
