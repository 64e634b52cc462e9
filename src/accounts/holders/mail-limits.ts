import { networksOf } from "../../limits/address.ts";
import type { Buckets } from "../../limits/buckets.ts";
import { shortHash } from "../identity/tries.ts";

/** Mails that one network may cause, to all recipients together; those of an IPv6 site have four times as many. */
const BY_NETWORK = { points: 10, seconds: 600 };
/** Mails for one purpose to one recipient. */
const BY_RECIPIENT = { points: 5, seconds: 3_600 };

/** Purpose of a mail. Each is counted alone: sign-ups with a stranger's address must not block their password reset. */
export type MailPurpose = "sign-up" | "reset" | "new-address";

/**
 * Counts one requested mail. Returns the seconds to wait if the limit is reached, else 0. Registered and unknown addresses
 * count alike, so the result reveals nothing. A network at its limit does not use up the recipient's. A `+` suffix is
 * ignored, because most mail servers deliver it to the same mailbox.
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
  const who = shortHash(mailbox);
  const limits = networksOf(address).map(
    ({ network, factor }) => [`network ${network}`, { ...BY_NETWORK, points: factor * BY_NETWORK.points }] as const,
  );
  for (const [name, size] of [...limits, [`${purpose} to ${who}`, BY_RECIPIENT] as const]) {
    const { isGranted, waitMs } = await buckets.draw(`mail-asked ${name}`, size);
    if (!isGranted) return Math.max(1, Math.ceil(waitMs / 1_000));
  }
  return 0;
}
