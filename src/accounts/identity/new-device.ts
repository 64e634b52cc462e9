import type { Sql } from "../../db/client.ts";
import { shortAddress } from "../../limits/address.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import { browserName } from "./browser-name.ts";
import type { IdentitySurface } from "./identity.ts";
import { signInFromNewDevice } from "../letters.ts";
import { isLocalAddress } from "../operators/local-operator.ts";

/** At most one mail in each of these windows of time, so that repeated sign-ins cannot flood a mailbox. */
const WINDOW_MS = 120_000;

/** Mails a person that they signed in from a browser that was not used before. Not for addresses of this machine. */
export async function mailNewDevice(
  { sql, surface, site }: { sql: Sql; surface: IdentitySurface; site: () => string },
  { userId, email, address, userAgent }: { userId: string; email: string; address: string; userAgent: string },
): Promise<void> {
  if (isLocalAddress(email)) return;
  const now = new Date();
  const written = signInFromNewDevice({
    site: site(),
    surface,
    at: `${now.toISOString().slice(0, 16).replace("T", " ")} UTC`,
    browser: browserName(userAgent),
    address: shortAddress(address),
  });
  const dedupKey = `new device ${userId} ${Math.floor(now.getTime() / WINDOW_MS)}`;
  await queueMail(sql, { ...written, recipient: email, dedupKey });
}
