import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from "node:crypto";

/** What links that grant access are encrypted with while their mail waits; the same in every process. */
export type MailKey = KeyObject;

/** Placeholder for the sealed link in the text of a mail. */
export const LINK = "[link]";

/** Why a mail waits whose link was sealed with none of a worker's keys; another worker may have the secret. */
export const UNREADABLE_LINK =
  "its link is encrypted with another AUTH_SECRET; give this worker the one that the console has";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Derives the key for links in mails from AUTH_SECRET (HKDF-SHA-256). */
export function mailKeyOf(secret: string): MailKey {
  return createSecretKey(Buffer.from(hkdfSync("sha256", secret, "", "roundhouse mail link", 32)));
}

/** The keys that a waiting mail may be sealed with: of AUTH_SECRET, and of the one before it. */
export function mailKeysOf(secret: string, previous: string | undefined): MailKey[] {
  return [secret, ...(previous === undefined ? [] : [previous])].map(mailKeyOf);
}

/** Encrypts a link for one recipient (AES-256-GCM): with another recipient's address it cannot be opened. */
export function sealLink(key: MailKey, recipient: string, link: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(recipient));
  return Buffer.concat([nonce, cipher.update(link, "utf8"), cipher.final(), cipher.getAuthTag()]);
}

/** The text of a mail with its link in place; null if the link was sealed with none of these keys. */
export function unsealText(
  keys: readonly MailKey[],
  { recipient, body, sealed }: { recipient: string; body: string; sealed: Buffer | null },
): string | null {
  if (sealed === null) return body;
  for (const key of keys) {
    const link = openLink(key, recipient, sealed);
    if (link !== null) return body.replace(LINK, () => link);
  }
  return null;
}

function openLink(key: MailKey, recipient: string, sealed: Buffer): string | null {
  const nonce = sealed.subarray(0, NONCE_BYTES);
  const encrypted = sealed.subarray(NONCE_BYTES, -TAG_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(recipient));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(encrypted), decipher.final()]).toString("utf8");
  } catch {
    return null; // another key, or a changed row
  }
}
