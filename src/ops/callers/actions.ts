import { z } from "zod";
import { removeHolderTwoFactor } from "../../accounts/holders/holder-two-factor.ts";
import { findAccount, restoreAccount, suspendAccount } from "../../callers/account-store.ts";
import { type Outcome, revokeKey } from "../../callers/store.ts";
import type { Transaction } from "../../db/client.ts";
import { nested } from "../../db/nested.ts";
import { auditedAction, type Change } from "../audited-action.ts";
import { PageError } from "../../frame/errors.ts";
import { idOf } from "../../frame/path-id.ts";
import { reason } from "../payloads/listing.ts";

const form = z.object({ reason });
const roles = ["operator"] as const;

/** Suspends an account: its keys are refused until it is restored. */
export const suspendAccountAction = auditedAction({
  name: "account.suspend",
  title: "Suspend account",
  path: "/callers/:id/suspend",
  roles,
  isDangerous: true,
  form,
  async change(tx, { visitor, params, form: given }) {
    const id = await requireAccount(tx, params["id"]);
    const done = await suspendAccount(tx, id, { by: visitor.email, reason: given.reason });
    return changeOf(id, "is suspended: its keys are refused from the next call on", done);
  },
});

/** Restores a suspended account. */
export const restoreAccountAction = auditedAction({
  name: "account.restore",
  title: "Restore account",
  path: "/callers/:id/restore",
  roles,
  isDangerous: true,
  form,
  async change(tx, { params }) {
    const id = await requireAccount(tx, params["id"]);
    return changeOf(id, "is restored: its keys work again", await restoreAccount(tx, id));
  },
});

/** Turns off the second factor of a holder who lost it. An admin has to verify the identity in another way. */
export const resetTwoFactorAction = auditedAction({
  name: "account.reset-two-factor",
  title: "Turn off two-factor authentication",
  path: "/callers/:id/reset-two-factor",
  roles: [],
  isDangerous: true,
  form,
  async change(tx, { params }) {
    const id = await requireAccount(tx, params["id"]);
    const outcome = "has no second factor any more and is signed out everywhere";
    return changeOf(id, outcome, await removeHolderTwoFactor(tx, id));
  },
});

/** The account that a path names. @throws PageError 404 if there is none. */
async function requireAccount(tx: Transaction, text: string | undefined): Promise<bigint> {
  const id = idOf(text);
  if (id === null || (await findAccount(tx, { id })) === null) throw new PageError(404, "there is no such account");
  return id;
}

function changeOf(
  id: bigint,
  outcome: string,
  done: Outcome<{ email: string; before: object; after: object }>,
): Change {
  if (!done.ok) return { ok: false, problem: done.reason };
  const { email, before, after } = done;
  // by its id: the log cannot delete an address, which has to be deleted when the account is closed
  const target = `account ${id}`;
  return { ok: true, target, before, after, message: `${email} ${outcome}`, location: `/ops/callers/${id}` };
}

/** Revokes one key of an account permanently. */
export const revokeKeyAction = auditedAction({
  name: "key.revoke",
  title: "Revoke key",
  path: "/callers/:id/keys/:key/revoke",
  roles,
  isDangerous: true,
  form,
  async change(tx, { params }) {
    const id = idOf(params["id"]);
    const account = id === null ? null : await findAccount(tx, { id });
    const key = idOf(params["key"]);
    if (account === null || key === null) throw new PageError(404, "there is no such key");
    const done = await revokeKey(nested(tx), key, account.id);
    if (!done.ok) return { ok: false, problem: `${account.email} has no key ${key}` };
    if (done.before === "revoked") return { ok: false, problem: `key ${key} was revoked already` };
    return {
      ok: true,
      target: `key ${key} of account ${account.id}`,
      before: { state: done.before, last4: done.last4 },
      after: { state: "revoked", last4: done.last4 },
      message: `key ${key} (…${done.last4}) is revoked from the next call on`,
      location: `/ops/callers/${account.id}`,
    };
  },
});
