import { type Settings, usesHttps } from "../../config/environment.ts";
import { reasonOf } from "../../errors.ts";
import { withoutPassword } from "../../log.ts";
import { tryMailServer } from "../../mail/deliver.ts";
import { senderOf } from "../../mail/sender.ts";
import { fail, type Finding, ok, warn } from "./finding.ts";

/** Checks that the mail server accepts our connection and login. Sends nothing; ends within 20 s. */
export async function checkMail(settings: Pick<Settings, "SMTP_URL" | "MAIL_FROM" | "PUBLIC_URL">): Promise<Finding> {
  const { SMTP_URL } = settings;
  const check = "mail";
  if (SMTP_URL === undefined) {
    const found = "SMTP_URL is not set: mails wait, and are shown at /ops/mails";
    return usesHttps(settings)
      ? warn(check, found, "set SMTP_URL: without mail, addresses cannot be confirmed")
      : ok(check, found);
  }
  const server = withoutPassword(SMTP_URL);
  try {
    await tryMailServer(SMTP_URL);
    return ok(check, `${server}, from ${senderOf(settings).address}`);
  } catch (error) {
    const advice = "start the mail server, or set SMTP_URL to one that takes mail from here; mails wait meanwhile";
    return fail(check, `${server}: ${reasonOf(error)}`, advice);
  }
}
