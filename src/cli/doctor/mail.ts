import type { Settings } from "../../config/environment.ts";
import { reasonOf } from "../../errors.ts";
import { withoutPassword } from "../../log.ts";
import { tryMailServer } from "../../mail/deliver.ts";
import { senderOf } from "../../mail/sender.ts";
import type { Finding } from "./checks.ts";

/** Checks that the mail server accepts our connection and login. Sends nothing; ends within 20 s. */
export async function checkMail(settings: Pick<Settings, "SMTP_URL" | "MAIL_FROM" | "PUBLIC_URL">): Promise<Finding> {
  const { SMTP_URL, PUBLIC_URL } = settings;
  const check = "mail";
  if (SMTP_URL === undefined) {
    const found = "SMTP_URL is not set: mails wait, and are shown at /ops/mails";
    return PUBLIC_URL?.startsWith("https:") === true
      ? { check, status: "warn", found, advice: "set SMTP_URL: without mail, addresses cannot be confirmed" }
      : { check, status: "ok", found, advice: null };
  }
  const server = withoutPassword(SMTP_URL);
  try {
    await tryMailServer(SMTP_URL);
    return { check, status: "ok", found: `${server}, from ${senderOf(settings).address}`, advice: null };
  } catch (error) {
    const advice = "start the mail server, or set SMTP_URL to one that takes mail from here; mails wait meanwhile";
    return { check, status: "fail", found: `${server}: ${reasonOf(error)}`, advice };
  }
}
