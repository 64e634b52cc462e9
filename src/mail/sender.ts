import { isLoopback } from "../this-machine.ts";
import { SENDER_NAME, type Sender } from "../config/mail.ts";

/** Whom our mails come from: MAIL_FROM, or no-reply at the host of PUBLIC_URL. */
export function senderOf(settings: { MAIL_FROM?: Sender | undefined; PUBLIC_URL?: string | undefined }): Sender {
  const { MAIL_FROM, PUBLIC_URL } = settings;
  if (MAIL_FROM !== undefined) return MAIL_FROM;
  const host = PUBLIC_URL === undefined ? "localhost" : new URL(PUBLIC_URL).hostname;
  return { name: SENDER_NAME, address: `no-reply@${isLoopback(host) ? "localhost" : host}` };
}
