import { findOperator } from "../accounts/operators/operator-store.ts";
import type { Transaction } from "../db/client.ts";
import { PageError } from "../frame/errors.ts";
import type { Person } from "../topups/bank/four-eyes.ts";
import type { Visitor } from "./contract.ts";

/** Returns the member of staff who acts, with whether they have a second factor. @throws PageError 403 for a former one */
export async function personOf(tx: Transaction, { operatorId, email }: Visitor): Promise<Person> {
  const operator = await findOperator(tx, { id: operatorId });
  if (operator === null) throw new PageError(403, `${email} is no operator any more`);
  return { id: operatorId, email, hasTwoFactor: operator.hasTwoFactor };
}
