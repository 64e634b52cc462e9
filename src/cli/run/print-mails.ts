import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { takeMailsToPrint } from "../../mail/print-store.ts";
import { type MailKey, unsealText } from "../../mail/seal.ts";

const CHECK_EVERY_MS = 1_000;

/**
 * Prints each new mail with `say` if a start serves only its own machine and has no mail server: the operator there
 * opens its link. Bypasses the log, which would redact the link. Ends with the signal; while the database does not respond,
 * it retries every second.
 */
export async function printMails(
  sql: Sql,
  { say, keys, log, signal }: { say: (text: string) => void; keys: readonly MailKey[]; log: Log; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    try {
      for (const mail of await takeMailsToPrint(sql)) {
        const { recipient, subject } = mail;
        const body = unsealText(keys, mail) ?? mail.body;
        say(`a mail to ${recipient} (no SMTP_URL, so it is printed here)\n  ${subject}\n\n${indent(body)}`);
      }
    } catch (error) {
      log.debug(`mails are not printed now: ${reasonOf(error)}`);
    }
    await delay(CHECK_EVERY_MS, undefined, { signal }).catch(() => undefined); // the signal ends the loop
  }
}

function indent(text: string): string {
  return text.replaceAll(/^(?=.)/gm, "  ");
}
