import { appendAudit } from "../audit/store.ts";
import { announce } from "../callers/store.ts";
import type { Sql } from "../db/client.ts";
import { queueMail } from "../mail/outbox-store.ts";
import { type HolderActor, holderEntry } from "./holder-entry.ts";
import { addressChanged, addressWillChange, newAddressIsTaken, proveNewAddress } from "./letters.ts";
import { findMailToken, insertMailToken, takeMailToken, withdrawMailTokens } from "./mail-token-store.ts";
import type { Mailing } from "./sign-up.ts";
import { findPerson, isTaken, lockPerson, saveAddress } from "./person-store.ts";

/** How long the link that proves a new address works. */
const LASTS_SECONDS = 24 * 3_600;

/** Somebody who wants another address. */
interface Asking {
  userId: string;
  email: string;
  next: string;
  by: HolderActor;
}

/**
 * Mails a link to the address that somebody wants to use from now on, and a notice to the one they have. Whether the new
 * one is somebody's already only the mail to it says.
 */
export async function askNewAddress(
  sql: Sql,
  { userId, email, next, site, mailKey, by }: Asking & Mailing,
): Promise<void> {
  await sql.begin(async (tx) => {
    await lockPerson(tx, userId);
    const purpose = "change-email" as const;
    const token = await insertMailToken(tx, { purpose, userId, email: next, lastsSeconds: LASTS_SECONDS });
    const letter = (await isTaken(tx, next)) ? newAddressIsTaken({ site }) : proveNewAddress({ site, token });
    await queueMail(tx, { ...letter, recipient: next, sealWith: mailKey });
    await queueMail(tx, { ...addressWillChange({ site }), recipient: email });
    await appendAudit(tx, holderEntry(by, { action: "own.ask-email" }));
  });
}

/** What came of opening the link that proves a new address. */
export type AddressChange = { ok: true } | { ok: false; reason: "unknown-link" | "taken" };

/**
 * Gives somebody the address that their link proves, at their sign-in and at their account. Links that were mailed to
 * the address before it no longer work.
 */
export async function takeNewAddress(
  sql: Sql,
  { token, by }: { token: string; by: Omit<HolderActor, "accountId"> },
): Promise<AddressChange> {
  try {
    return await sql.begin(async (tx): Promise<AddressChange> => {
      const found = await findMailToken(tx, "change-email", token);
      if (found === null) return { ok: false, reason: "unknown-link" };
      const { userId, email: next } = found;
      await lockPerson(tx, userId); // before the token, as everybody who makes one does
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
    // somebody else proved the same address in the same moment; the link works as long as it did
    if (error instanceof Error && "code" in error && error.code === "23505") return { ok: false, reason: "taken" };
    throw error;
  }
}
