import type { Decided } from "../../audit/decision.ts";
import type { Transaction } from "../../db/client.ts";
import type { Person } from "../../topups/bank/four-eyes.ts";
import { personOf } from "../acting-person.ts";
import { auditedAction } from "../audited-action.ts";
import type { OpsAction, OpsParts } from "../contract.ts";
import { requireId } from "../../frame/path-id.ts";

/** The roles that may act on bank transfers, in addition to admins. */
export const roles = ["operator"] as const;

type Declared<Form> = Omit<OpsAction<Form>, "run" | "roles"> & {
  decide: (tx: Transaction, by: Person, lineId: bigint, form: Form, parts: OpsParts) => Promise<Decided>;
};

/** A decision on the bank line that the path names; it leads back to the line. */
export function lineAction<Form>({ decide, ...action }: Declared<Form>): OpsAction {
  return auditedAction<Form>({
    ...action,
    roles,
    location: ({ params }) => `/ops/bank/lines/${params["id"]}`,
    change: async (tx, { visitor, params, form }, parts) =>
      decide(tx, await personOf(tx, visitor), requireId(params["id"]), form, parts),
  });
}
