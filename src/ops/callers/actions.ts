import { z } from "zod";
import { removeHolderTwoFactor } from "../../accounts/holders/holder-two-factor.ts";
import { appendAudit } from "../../audit/store.ts";
import { findAccount, restoreAccount, suspendAccount } from "../../callers/account-store.ts";
import { listKeys, type Outcome, revokeKey } from "../../callers/store.ts";
import type { Transaction } from "../../db/client.ts";
import { nested } from "../../db/nested.ts";
import { auditEntry } from "../audit-entry.ts";
import { type Done, opsAction, type OpsParts, type Sent } from "../contract.ts";
import { PageError } from "../../frame/errors.ts";
import { idOf, reason } from "../payloads/listing.ts";

const form = z.object({ reason });
type Form = z.infer<typeof form>;

const roles = ["operator"] as const;

/** Suspends an account: its keys are refused until it is restored. */
export const suspendAccountAction = opsAction({
  name: "account.suspend",
  title: "Suspend account",
  path: "/callers/:id/suspend",
  roles,
  isDangerous: true,
  form,
  run: (parts, sent) =>
    decide(parts, sent, {
      name: "account.suspend",
      message: "is suspended: its keys are refused from the next call on",
      work: (tx, id) => suspendAccount(tx, id, { by: sent.visitor.email, reason: sent.form.reason }),
    }),
});

/** Restores a suspended account. */
export const restoreAccountAction = opsAction({
  name: "account.restore",
  title: "Restore account",
  path: "/callers/:id/restore",
  roles,
  isDangerous: true,
  form,
  run: (parts, sent) =>
    decide(parts, sent, {
      name: "account.restore",
      message: "is restored: its keys work again",
      work: restoreAccount,
    }),
});

/** Turns off the second factor of a holder who lost it. An admin has to verify the identity in another way. */
export const resetTwoFactorAction = opsAction({
  name: "account.reset-two-factor",
  title: "Turn off two-factor authentication",
  path: "/callers/:id/reset-two-factor",
  roles: [],
  isDangerous: true,
  form,
  run: (parts, sent) =>
    decide(parts, sent, {
      name: "account.reset-two-factor",
      message: "has no second factor any more and is signed out everywhere",
      work: removeHolderTwoFactor,
    }),
});

/** Revokes one key of an account permanently. */
export const revokeKeyAction = opsAction({
  name: "key.revoke",
  title: "Revoke key",
  path: "/callers/:id/keys/:key/revoke",
  roles,
  isDangerous: true,
  form,
  async run({ sql }, { visitor, params, form: given }) {
    const id = idOf(params["id"]);
    const account = id === null ? null : await findAccount(sql, { id });
    const key = idOf(params["key"]);
    if (account === null || key === null) throw new PageError(404, "there is no such key");
    const outcome = await sql.begin(async (tx): Promise<Outcome<{ last4: string }>> => {
      const before = (await listKeys(tx, account.email)).find((one) => one.id === key);
      if (before === undefined) return { ok: false, reason: `${account.email} has no key ${key}` };
      if (before.state === "revoked") return { ok: false, reason: `key ${key} was revoked already` };
      // four digits may be the last four characters of another key; eighteen are an id and nothing else
      const done = await revokeKey(nested(tx), String(key).padStart(18, "0"));
      if (!done.ok) return done;
      const after = (await listKeys(tx, account.email)).find((one) => one.id === key);
      const entry = {
        action: "key.revoke",
        target: `key ${key} of account ${account.id}`,
        before: { state: before.state, last4: before.last4 },
        after: { state: after?.state, last4: before.last4 },
        reason: given.reason,
      };
      await appendAudit(tx, auditEntry(visitor, entry));
      return done;
    });
    if (!outcome.ok) return { ok: false, problem: outcome.reason };
    const message = `key ${key} (…${outcome.last4}) is revoked from the next call on`;
    return { ok: true, message, location: `/ops/callers/${account.id}` };
  },
});

async function decide(
  { sql }: OpsParts,
  { visitor, params, form: given }: Sent<Form>,
  act: {
    name: string;
    message: string;
    work(tx: Transaction, id: bigint): Promise<Outcome<{ email: string; before: object; after: object }>>;
  },
): Promise<Done> {
  const id = idOf(params["id"]);
  const account = id === null ? null : await findAccount(sql, { id });
  if (id === null || account === null) throw new PageError(404, "there is no such account");
  const outcome = await sql.begin(async (tx) => {
    const done = await act.work(tx, id);
    if (!done.ok) return done;
    const { before, after } = done;
    // by its id: the log cannot delete an address, which has to be deleted when the account is closed
    const entry = { action: act.name, target: `account ${id}`, before, after, reason: given.reason };
    await appendAudit(tx, auditEntry(visitor, entry));
    return done;
  });
  if (!outcome.ok) return { ok: false, problem: outcome.reason };
  return { ok: true, message: `${outcome.email} ${act.message}`, location: `/ops/callers/${id}` };
}
