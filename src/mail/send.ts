import type { Sql } from "../db/client.ts";
import type { Log } from "../log.ts";
import { type Delivery, type MailServer, openMailServer } from "./deliver.ts";
import { MAIL_RETRY, MOST_PER_RUN, RUN_BEGINS_WITHIN_MS, SERVER_RETRY } from "./limits.ts";
import { finishMail, giveUpLateMails, putOffMail, refuseMail, type TakenMail, takeMail } from "./outbox-store.ts";
import { clearSendFailure, saveSendFailure } from "./failure-store.ts";
import { type MailKey, unsealText } from "./seal.ts";
import type { Sender } from "../config/mail.ts";

/** What a run of sending came to. */
export interface SentCounts {
  sent: number;
  putOff: number;
  refused: number;
  givenUp: number;
}

/** What sending needs. */
export interface SendParts {
  sql: Sql;
  url: string;
  from: Sender;
  /** What links in mails may be encrypted with. */
  keys: readonly MailKey[];
  log: Log;
  signal: AbortSignal;
  /** Told for how many seconds the server has been in trouble by now, and why; 0 where it takes mails. */
  troubled(seconds: number, reason: string): Promise<void>;
}

/**
 * Sends what waits, oldest first, over one connection, and ends after some hundred mails, some minutes, or where the
 * mail server is in trouble: then the others need not be tried. One that is refused holds no other up.
 */
export async function sendWaitingMails(parts: SendParts): Promise<SentCounts> {
  const { sql, url, from, signal } = parts;
  const counts: SentCounts = { sent: 0, putOff: 0, refused: 0, givenUp: await giveUpLateMails(sql, MOST_PER_RUN) };
  const server = openMailServer(url, from);
  const endsAt = performance.now() + RUN_BEGINS_WITHIN_MS;
  try {
    for (let begun = 0; begun < MOST_PER_RUN && performance.now() < endsAt && !signal.aborted; begun += 1) {
      const mail = await takeMail(sql);
      if (mail === null) break;
      const delivery = await sendOne(parts, server, mail);
      counts[COUNTED[delivery.outcome]] += 1;
      if (delivery.outcome === "trouble") {
        await parts.troubled(await saveSendFailure(sql, delivery.reason), withoutAddresses(delivery.reason));
        break;
      }
      if (begun > 0 || signal.aborted) continue;
      await clearSendFailure(sql);
      await parts.troubled(0, "");
    }
  } finally {
    server.close();
  }
  return counts;
}

const COUNTED = { sent: "sent", never: "refused", later: "putOff", trouble: "putOff" } as const;

/** Another worker may have the secret. */
const UNREADABLE: Delivery = {
  outcome: "later",
  reason: "its link is encrypted with another AUTH_SECRET; give this worker the one that the console has",
};

/** Sends one mail and notes what came of it. */
async function sendOne({ sql, keys, log, signal }: SendParts, server: MailServer, mail: TakenMail): Promise<Delivery> {
  const body = unsealText(keys, mail);
  const delivery = body === null ? UNREADABLE : await server.deliver({ ...mail, body }, signal);
  if (delivery.outcome === "sent") {
    await finishMail(sql, mail);
    return delivery;
  }
  const { outcome, reason } = delivery;
  if (outcome === "never") await refuseMail(sql, mail, reason);
  else await putOffMail(sql, mail, reason, outcome === "trouble" ? SERVER_RETRY : MAIL_RETRY);
  const facts = { mail: String(mail.id), kind: mail.kind, attempts: mail.attempts };
  log.warn(facts, `mail ${mail.id} is not sent: ${withoutAddresses(reason)}`);
  return delivery;
}

/** What a server said, for logs and alerts, which no person's address belongs in. */
function withoutAddresses(reason: string): string {
  return reason.replaceAll(/[^\s<>"'(:]+@[^\s<>"'):;,]+/g, "(an address)");
}
