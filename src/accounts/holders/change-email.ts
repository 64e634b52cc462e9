import { appendAudit } from "../../audit/store.ts";
import { announce } from "../../callers/key-store.ts";
import type { Sql } from "../../db/client.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import { type HolderActor, holderEntry } from "./holder-entry.ts";
import { addressChanged, addressWillChange, newAddressIsTaken, proveNewAddress } from "../letters.ts";
import { findMailToken, insertMailToken, takeMailToken, withdrawMailTokens } from "./mail-token-store.ts";
import type { Mailing } from "./sign-up.ts";
import { findPasswordHash } from "../operators/operator-store.ts";
import { findPerson, isTaken, lockPerson, saveAddress } from "./person-store.ts";

/** How long the link that proves a new address works. */
const LASTS_SECONDS = 24 * 3_600;

/** A request for a new address, by its holder who proved the password. */
interface Asking {
  userId: string;
  /** The hash of the password, read before it was proven. */
  from: string | null;
  email: string;
  next: string;
  by: HolderActor;
}

/**
 * Mails a link to the new address and a notice to the current one. Only the mail to the new address shows whether it is
 * registered already. False if the password was changed after it was proven.
 */
export async function askNewAddress(
  sql: Sql,
  { userId, from, email, next, site, mailKey, by }: Asking & Mailing,
): Promise<boolean> {
  return sql.begin(async (tx) => {
    await lockPerson(tx, userId);
    if ((await findPasswordHash(tx, { userId })) !== from) return false;
    const purpose = "change-email" as const;
    const token = await insertMailToken(tx, { purpose, userId, email: next, lastsSeconds: LASTS_SECONDS });
    const letter = (await isTaken(tx, next)) ? newAddressIsTaken({ site }) : proveNewAddress({ site, token });
    await queueMail(tx, { ...letter, recipient: next, sealWith: mailKey });
    await queueMail(tx, { ...addressWillChange({ site }), recipient: email });
    await appendAudit(tx, holderEntry(by, { action: "own.ask-email" }));
    return true;
  });
}

/** The outcome of confirming a new address. */
export type AddressChange = { ok: true } | { ok: false; reason: "unknown-link" | "taken" };

/** Sets the confirmed address on the sign-in and the account of a person. Earlier mailed links stop working. */
export async function takeNewAddress(
  sql: Sql,
  { token, by }: { token: string; by: Omit<HolderActor, "accountId"> },
): Promise<AddressChange> {
  try {
    return await sql.begin(async (tx): Promise<AddressChange> => {
      const found = await findMailToken(tx, "change-email", token);
      if (found === null) return { ok: false, reason: "unknown-link" };
      const { userId, email: next } = found;
      await lockPerson(tx, userId); // before the token: those who create tokens lock in this order
      if ((await takeMailToken(tx, "change-email", token)) === null) return { ok: false, reason: "unknown-link" };
      const person = await findPerson(tx, { userId });
      if (person === null || person.accountId === null) {
        return { ok: false, reason: "unknown-link" };
      }
      if (await isTaken(tx, next)) return { ok: false, reason: "taken" };
      await saveAddress(tx, userId, next);
      await withdrawMailTokens(tx, userId);
      await queueMail(tx, { ...addressChanged(), recipient: person.email });
      await announce(tx);
      await appendAudit(tx, holderEntry({ ...by, accountId: person.accountId }, { action: "own.email" }));
      return { ok: true };
    });
  } catch (error) {
    // another person confirmed the same address concurrently; the rollback keeps this link usable
    if (error instanceof Error && "code" in error && error.code === "23505") return { ok: false, reason: "taken" };
    throw error;
  }
}
