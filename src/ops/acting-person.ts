import { findOperator } from "../accounts/operators/operator-store.ts";
import type { Transaction } from "../db/client.ts";
import { PageError } from "../frame/errors.ts";
import type { Person } from "../topups/bank/four-eyes.ts";
import type { Visitor } from "./contract.ts";

/**
 * Returns the member of staff who acts, with whether they have a second factor.
 * @throws PageError 403 for one who was disabled or got another role since the request began
 */
export async function personOf(tx: Transaction, { operatorId, email, role }: Visitor): Promise<Person> {
  const operator = await findOperator(tx, { id: operatorId });
  if (operator === null || operator.disabledAt !== null || operator.role !== role)
    throw new PageError(403, `${email} is no longer ${role}`);
  return { id: operatorId, email, hasTwoFactor: operator.hasTwoFactor };
}
