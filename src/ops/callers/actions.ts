import { z } from "zod";
import { removeHolderTwoFactor } from "../../accounts/holders/holder-two-factor.ts";
import { restoreAccount, suspendAccount } from "../../callers/account-store.ts";
import { revokeKey } from "../../callers/key-store.ts";
import { nested } from "../../db/nested.ts";
import { auditedAction } from "../audited-action.ts";
import type { Sent } from "../contract.ts";
import { requireId } from "../../frame/path-id.ts";
import { reason } from "../payloads/listing.ts";

const decision = {
  roles: ["operator"],
  isDangerous: true,
  form: z.object({ reason }),
  location: ({ params }: Pick<Sent<unknown>, "params">) => `/ops/callers/${params["id"]}`,
} as const;

/** Suspends an account: its keys are refused until it is restored. */
export const suspendAccountAction = auditedAction({
  ...decision,
  name: "account.suspend",
  title: "Suspend account",
  path: "/callers/:id/suspend",
  change: (tx, { visitor, params, form }) =>
    suspendAccount(tx, requireId(params["id"]), { by: visitor.email, reason: form.reason }),
});

/** Restores a suspended account. */
export const restoreAccountAction = auditedAction({
  ...decision,
  name: "account.restore",
  title: "Restore account",
  path: "/callers/:id/restore",
  change: (tx, { params }) => restoreAccount(tx, requireId(params["id"])),
});

/** Turns off the second factor of a holder who lost it. An admin has to verify the identity in another way. */
export const resetTwoFactorAction = auditedAction({
  ...decision,
  name: "account.reset-two-factor",
  title: "Turn off two-factor authentication",
  path: "/callers/:id/reset-two-factor",
  roles: [],
  change: (tx, { params }) => removeHolderTwoFactor(tx, requireId(params["id"])),
});

/** Revokes one key of an account permanently. */
export const revokeKeyAction = auditedAction({
  ...decision,
  name: "key.revoke",
  title: "Revoke key",
  path: "/callers/:id/keys/:key/revoke",
  change: (tx, { params }) => revokeKey(nested(tx), requireId(params["key"]), requireId(params["id"])),
});
