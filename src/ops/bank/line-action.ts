import type { Transaction } from "../../db/client.ts";
import { PageError } from "../../frame/errors.ts";
import type { Person } from "../../topups/bank/four-eyes.ts";
import type { Decision } from "../../topups/bank/hold.ts";
import { lineName } from "../../topups/bank/line.ts";
import { personOf } from "../acting-person.ts";
import { auditedAction } from "../audited-action.ts";
import type { OpsAction, OpsParts } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";

/** The roles that may act on bank transfers, in addition to admins. */
export const roles = ["operator"] as const;

type Declared<Form> = Omit<OpsAction<Form>, "run" | "roles"> & {
  decide: (tx: Transaction, by: Person, lineId: bigint, form: Form, parts: OpsParts) => Promise<Decision>;
};

/** A decision on the bank line that the path names; it leads back to the line. */
export function lineAction<Form>({ decide, ...action }: Declared<Form>): OpsAction {
  return auditedAction<Form>({
    ...action,
    roles,
    async change(tx, { visitor, params, form }, parts) {
      const id = idOf(params["id"]);
      if (id === null) throw new PageError(404, "there is no such bank line");
      const done = await decide(tx, await personOf(tx, visitor), id, form, parts);
      if (!done.ok) {
        const { refused, ...refusal } = done;
        return { ...refusal, ...(refused !== undefined && { refused: lineName(refused) }) };
      }
      const { line, ...rest } = done;
      return { ...rest, target: lineName(line), location: `/ops/bank/lines/${id}` };
    },
  });
}
