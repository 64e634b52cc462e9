import type { Queryable } from "../../db/client.ts";
import { type ExpectedTransfer, findTransfers } from "./expected-store.ts";
import { isReference, readReference } from "./reference.ts";

/** The account that a line may belong to, with its announced transfer if the reference names one. */
export interface Target {
  accountId: bigint;
  email: string;
  isClosed: boolean;
  isSuspended: boolean;
  transfer: ExpectedTransfer | null;
}

/** The target of a text that was typed, or the problem with that text. */
export type FoundTarget = { ok: true; target: Target } | { ok: false; problem: string };

/** Finds the target of a line by one of our references, or by an account's id or e-mail address. */
export async function findTarget(sql: Queryable, text: string): Promise<FoundTarget> {
  const typed = text.trim();
  if (/^rf/i.test(typed) && !typed.includes("@")) {
    if (!isReference(typed)) {
      return { ok: false, problem: `${typed} has a typo: its check digits do not fit; compare it with the statement` };
    }
    const of = readReference(typed);
    const [transfer] = of === null ? [] : await findTransfers(sql, [typed.replaceAll(" ", "").toUpperCase()]);
    if (transfer === undefined) return { ok: false, problem: `no account has the reference ${typed}` };
    const { accountId, email, isClosed, isSuspended } = transfer;
    return { ok: true, target: { accountId, email, isClosed, isSuspended, transfer } };
  }
  const [account] = await sql<Omit<Target, "transfer">[]>`
    select
      id as "accountId",
      email,
      closed_at is not null as "isClosed",
      suspended_at is not null as "isSuspended"
    from accounts
    where lower(email) = lower(${typed})
      or id = ${/^\d{1,18}$/.test(typed) ? typed : null}::bigint`;
  if (account === undefined) {
    return { ok: false, problem: `there is no account ${typed}; expected a reference, an id or an e-mail address` };
  }
  return { ok: true, target: { ...account, transfer: null } };
}
