import { appendAudit } from "../../audit/store.ts";
import { announce } from "../../callers/key-store.ts";
import type { Sql } from "../../db/client.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import { closeRows, lockHeld } from "./close-store.ts";
import { forgetOrigins } from "./consent-store.ts";
import { type HolderActor, holderEntry } from "./holder-entry.ts";
import { accountClosed } from "../letters.ts";
import { deletePerson, findPerson, lockPerson } from "./person-store.ts";
import { deleteSignUps } from "./sign-up-store.ts";

/**
 * Closes an account in one transaction: revokes its keys, ends its plans, and deletes its holder with all sessions. The
 * ledger and consents keep the account id only. False if the account is closed already.
 */
export async function closeAccount(sql: Sql, { userId, by }: { userId: string; by: HolderActor }): Promise<boolean> {
  const { accountId } = by;
  return sql.begin(async (tx) => {
    await lockPerson(tx, userId);
    const person = await findPerson(tx, { userId });
    if (person === null || !(await lockHeld(tx, { accountId, userId }))) return false;
    const ended = await closeRows(tx, accountId);
    await forgetOrigins(tx, accountId);
    await deleteSignUps(tx, person.email);
    await deletePerson(tx, userId);
    await queueMail(tx, { ...accountClosed({ accountId }), recipient: person.email });
    await announce(tx);
    const after = { keys_revoked: ended.keys, plans_ended: ended.plans };
    await appendAudit(tx, holderEntry(by, { action: "account.close", after }));
    return true;
  });
}
