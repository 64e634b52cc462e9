import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { takeMailsToPrint } from "../../mail/print-store.ts";
import { type MailKey, unsealText } from "../../mail/seal.ts";

const LOOKS_EVERY_MS = 1_000;

/**
 * Prints each new mail with `say`, where a start serves its own machine alone and has no mail server: its link is to be
 * opened by whoever sits there. Goes past the log, which would hide what is in a link. Ends with the signal; where the
 * database does not answer it looks again a second later.
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
    await delay(LOOKS_EVERY_MS, undefined, { signal }).catch(() => undefined); // the signal ends the loop
  }
}

function indent(text: string): string {
  return text.replaceAll(/^(?=.)/gm, "  ");
}
