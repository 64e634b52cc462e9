import { type AccountDecision, decided, findAccount, unknownAccount } from "../../callers/account-store.ts";
import type { Transaction } from "../../db/client.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import { findHolderSummary } from "./holder-summary-store.ts";
import { factorTakenOff } from "../letters.ts";
import { deleteTwoFactor } from "../operators/operator-store.ts";
import { endHolderSessions } from "../identity/session-store.ts";

/** Turns off two-factor authentication for a holder who lost it, ends their sessions and mails them. */
export async function removeHolderTwoFactor(tx: Transaction, accountId: bigint): Promise<AccountDecision> {
  const [account, holder] = [await findAccount(tx, { id: accountId }), await findHolderSummary(tx, accountId)];
  if (account === null || holder === null) return unknownAccount(accountId);
  const { email } = account;
  const { userId } = holder;
  if (userId === null) return { ok: false, problem: `${email} has no holder who signs in` };
  if (!(await deleteTwoFactor(tx, userId))) return { ok: false, problem: `${email} has no second factor` };
  const ended = await endHolderSessions(tx, userId);
  await queueMail(tx, { ...factorTakenOff(), recipient: email });
  return decided(account, "has no second factor any more and is signed out everywhere", {
    before: { two_factor: true },
    after: { two_factor: false, sessions_ended: ended },
  });
}
