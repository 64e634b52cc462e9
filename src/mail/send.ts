import type { Sql } from "../db/client.ts";
import type { Log } from "../log.ts";
import { type Delivery, type MailServer, openMailServer } from "./deliver.ts";
import { MAIL_RETRY, MOST_PER_RUN, RUN_BEGINS_WITHIN_MS, SERVER_RETRY } from "./limits.ts";
import { finishMail, giveUpLateMails, putOffMail, refuseMail, type TakenMail, takeMail } from "./outbox-store.ts";
import { clearSendFailure, saveSendFailure } from "./failure-store.ts";
import { type MailKey, UNREADABLE_LINK, unsealText } from "./seal.ts";
import type { Sender } from "../config/mail.ts";

/** Numbers of mails of a run, by outcome. */
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
  /** Called with the seconds for which the server has failed, and why; with 0 when it takes mails. */
  onServerState(seconds: number, reason: string): Promise<void>;
}

/**
 * Sends waiting mails, oldest first, over one connection. Stops after some hundred mails, after some minutes, or if the mail
 * server fails, as it would for the others. A refused mail does not delay the others.
 */
export async function sendWaitingMails(parts: SendParts): Promise<SentCounts> {
  const { sql, url, from, signal } = parts;
  const counts: SentCounts = { sent: 0, putOff: 0, refused: 0, givenUp: await giveUpLateMails(sql, MOST_PER_RUN) };
  const server = openMailServer(url, from);
  const endsAt = performance.now() + RUN_BEGINS_WITHIN_MS;
  let isKnownToWork = false;
  try {
    for (let begun = 0; begun < MOST_PER_RUN && performance.now() < endsAt && !signal.aborted; begun += 1) {
      const mail = await takeMail(sql);
      if (mail === null) break;
      const delivery = await sendOne(parts, server, mail);
      counts[COUNTED[delivery.outcome]] += 1;
      if (delivery.outcome === "server-failure") {
        await parts.onServerState(await saveSendFailure(sql, delivery.reason), withoutAddresses(delivery.reason));
        break;
      }
      if (isKnownToWork || delivery === UNREADABLE || signal.aborted) continue;
      isKnownToWork = true;
      await clearSendFailure(sql);
      await parts.onServerState(0, "");
    }
  } finally {
    server.close();
  }
  return counts;
}

const COUNTED = { sent: "sent", never: "refused", later: "putOff", "server-failure": "putOff" } as const;

const UNREADABLE: Delivery = { outcome: "later", reason: UNREADABLE_LINK };

/** Sends one mail and stores the outcome. */
async function sendOne({ sql, keys, log, signal }: SendParts, server: MailServer, mail: TakenMail): Promise<Delivery> {
  const body = unsealText(keys, mail);
  const delivery = body === null ? UNREADABLE : await server.deliver({ ...mail, body }, signal);
  if (delivery.outcome === "sent") {
    await finishMail(sql, mail);
    return delivery;
  }
  const { outcome, reason } = delivery;
  if (outcome === "never") await refuseMail(sql, mail, reason);
  else await putOffMail(sql, mail, reason, outcome === "server-failure" ? SERVER_RETRY : MAIL_RETRY);
  const facts = { mail: String(mail.id), kind: mail.kind, attempts: mail.attempts };
  log.warn(facts, `mail ${mail.id} is not sent: ${withoutAddresses(reason)}`);
  return delivery;
}

/** A server's response without addresses of people, for logs and alerts. */
export function withoutAddresses(reason: string): string {
  return reason.replaceAll(/[^\s<>"'(:]+@[^\s<>"'):;,]+/g, "(an address)");
}
