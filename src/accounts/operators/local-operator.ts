import { appendAudit } from "../../audit/store.ts";
import type { Sql } from "../../db/client.ts";
import { insertLink, withdrawLinks } from "./link-store.ts";
import { findOperator, insertOperator } from "./operator-store.ts";

/** The operator at the machine that runs the service; `.localhost` is never resolved elsewhere (RFC 6761). */
export const LOCAL_OPERATOR = "operator@roundhouse.localhost";

/** Whether an e-mail address is of this machine only, so that no mail server delivers to it. */
export function isLocalAddress(email: string): boolean {
  return email.endsWith(".localhost");
}

/**
 * Creates a one-time link for the local operator, an admin, and returns its token; earlier links stop working.
 * @throws Error if an admin has disabled the local operator.
 */
export async function makeLocalLink(sql: Sql, lastsSeconds: number): Promise<string> {
  return sql.begin(async (tx) => {
    const by = "the start on this machine";
    const made = await insertOperator(tx, { email: LOCAL_OPERATOR, role: "admin", passwordHash: null, by });
    const operator = await findOperator(tx, { email: LOCAL_OPERATOR });
    if (operator === null) throw new Error("the local operator is neither new nor there");
    if (operator.disabledAt !== null) {
      throw new Error(
        `${LOCAL_OPERATOR} is disabled, so no link is printed; \`roundhouse ops-user enable\` lets it in`,
      );
    }
    await withdrawLinks(tx, operator.id);
    const token = await insertLink(tx, operator.id, lastsSeconds);
    await appendAudit(tx, {
      surface: "system",
      actor: by,
      role: null,
      action: "session.link",
      target: `operator ${LOCAL_OPERATOR}`,
      before: null,
      after: { is_new_operator: made !== null, works_seconds: lastsSeconds },
      reason: null,
      requestId: null,
      address: null,
    });
    return token;
  });
}
