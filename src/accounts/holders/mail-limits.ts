import { networksOf } from "../../limits/address.ts";
import type { Buckets } from "../../limits/buckets.ts";
import { shortHash } from "../identity/tries.ts";

/** Mails that one network may cause, to all recipients together; those of an IPv6 site have four times as many. */
const BY_NETWORK = { points: 10, seconds: 600 };
/** Mails for one purpose to one recipient. */
const BY_RECIPIENT = { points: 5, seconds: 3_600 };

/** Purpose of a mail. Each is counted alone: sign-ups with a stranger's address must not block their password reset. */
export type MailPurpose = "sign-up" | "reset" | "new-address";

/** The mailbox that a mail is for, and its purpose. */
interface RequestedMail {
  purpose: MailPurpose;
  recipient: string;
}

/**
 * Counts one requested mail. Returns the seconds to wait if the limit is reached, else 0. Registered and unknown addresses
 * count alike, so the result reveals nothing. A network at its limit does not use up the recipient's.
 */
export async function takeMail(buckets: Buckets, address: string, mail: RequestedMail): Promise<number> {
  const wait = await takeMailFrom(buckets, address);
  return wait > 0 ? wait : takeMailTo(buckets, mail);
}

/** Counts a request for a mail for its network alone. Returns the seconds to wait. */
export async function takeMailFrom(buckets: Buckets, address: string): Promise<number> {
  for (const { network, factor } of networksOf(address)) {
    const wait = await draw(buckets, `network ${network}`, { ...BY_NETWORK, points: factor * BY_NETWORK.points });
    if (wait > 0) return wait;
  }
  return 0;
}

/**
 * Counts a mail for its recipient alone. Returns the seconds to wait. Only for a mail that will be sent: otherwise strangers
 * use up the limit of a mailbox. A `+` suffix is ignored, because most mail servers deliver it to the same mailbox.
 */
export async function takeMailTo(buckets: Buckets, { purpose, recipient }: RequestedMail): Promise<number> {
  const mailbox = recipient
    .trim()
    .toLowerCase()
    .replace(/\+[^@]*(?=@)/, "");
  return draw(buckets, `${purpose} to ${shortHash(mailbox)}`, BY_RECIPIENT);
}

async function draw(buckets: Buckets, name: string, size: typeof BY_NETWORK): Promise<number> {
  const { isGranted, waitMs } = await buckets.draw(`mail-asked ${name}`, size);
  return isGranted ? 0 : Math.max(1, Math.ceil(waitMs / 1_000));
}
