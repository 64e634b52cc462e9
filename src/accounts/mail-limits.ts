import { createHash } from "node:crypto";
import { networkOf } from "../limits/address.ts";
import type { Buckets } from "../limits/buckets.ts";

/** Mails that one network may have us send, whatever their recipients. */
const BY_NETWORK = { points: 10, seconds: 600 };
/** Mails for one purpose that somebody gets because others typed their address. */
const BY_RECIPIENT = { points: 5, seconds: 3_600 };

/** What a mail is asked for. Each counts for itself: who signs up others' addresses must not keep them from a reset. */
export type MailPurpose = "sign-up" | "reset" | "new-address";

/**
 * Takes one of the mails that may be asked for; how long to wait, in whole seconds, where there is none left, else 0. It
 * counts whether or not the address is known, and so tells nothing about it. A network that has none left takes nothing
 * from the recipient. What follows a `+` is left out: most mail servers bring all of it to one mailbox.
 */
export async function takeMail(
  buckets: Buckets,
  address: string,
  { purpose, recipient }: { purpose: MailPurpose; recipient: string },
): Promise<number> {
  const mailbox = recipient
    .trim()
    .toLowerCase()
    .replace(/\+[^@]*(?=@)/, "");
  const who = createHash("sha256").update(mailbox).digest("base64url").slice(0, 22);
  for (const [name, size] of [
    [`network ${networkOf(address)}`, BY_NETWORK],
    [`${purpose} to ${who}`, BY_RECIPIENT],
  ] as const) {
    const { isGranted, waitMs } = await buckets.draw(`mail-asked ${name}`, size);
    if (!isGranted) return Math.max(1, Math.ceil(waitMs / 1_000));
  }
  return 0;
}
