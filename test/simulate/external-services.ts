import type { Sql } from "../../src/db/client.ts";
import { queueMail } from "../../src/mail/outbox-store.ts";
import { openProxy, type Proxy } from "../support/proxy.ts";
import { startMailServer } from "../support/mail-server.ts";
import { type NameServer, startNameServer } from "../support/name-server.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import { type ExtraHouse, serveExtraHouse } from "./extra-house.ts";
import { DOMAIN } from "./houses-file.ts";
import type { Truth } from "./truth.ts";
import { waitUntil } from "./wait-until.ts";

/** The name server, the mail server and an extra house: real servers that can be slow or unavailable. */
export interface ExternalServices {
  names: NameServer;
  mail: Proxy;
  extraHouse: ExtraHouse;
  /** Environment variables that make processes use them. */
  env: Record<string, string>;
  /** Adds mails to the outbox. */
  queueMails(sql: Sql, count: number): Promise<void>;
  /**
   * Waits until every queued mail is sent; retries are made due immediately.
   * @throws InvariantViolation if a mail is not sent, or arrived under several Message-IDs
   */
  checkMails(sql: Sql): Promise<void>;
  close(): Promise<void>;
}

const RECIPIENTS = "mails.example";
const SENT_WITHIN_MS = 60_000;

/** Starts the servers, and adds the names of all houses to the name server. */
export async function startExternalServices(truth: Truth): Promise<ExternalServices> {
  const [names, extraHouse, server] = await Promise.all([startNameServer(), serveExtraHouse(), startMailServer()]);
  const mail = await openProxy(() => server.port);
  for (const house of truth.houseFaults.keys()) names.on(`${house}.${DOMAIN}`, [{ a: "127.0.0.1" }]);
  let queued = 0;
  return {
    names,
    mail,
    extraHouse,
    env: { HOUSE_NAME_SERVERS: names.address, SMTP_URL: `smtp://127.0.0.1:${mail.port}` },
    async queueMails(sql, count) {
      for (let n = 0; n < count; n++, queued++) {
        await queueMail(sql, {
          kind: "simulated",
          recipient: `m${queued}@${RECIPIENTS}`,
          subject: `Mail ${queued}`,
          body: "of a simulation",
        });
      }
    },
    async checkMails(sql) {
      await waitUntil("a queued mail is not sent", SENT_WITHIN_MS, async () => {
        await sql`update mails set next_try_at = clock_timestamp() where sent_at is null and given_up_at is null`;
        const rows = await sql`
          select
          from mails
          where kind = 'simulated'
            and sent_at is null`;
        return rows.length === 0;
      });
      const arrived = server.received.filter(({ to: [to] }) => to?.endsWith(`@${RECIPIENTS}`) === true);
      const ids = Map.groupBy(arrived, ({ to: [to] }) => to);
      for (let n = 0; n < queued; n++) {
        const of = ids.get(`m${n}@${RECIPIENTS}`) ?? [];
        const different = new Set(of.map(({ headers }) => headers.get("message-id")));
        if (different.size !== 1)
          throw new InvariantViolation(`mail ${n} is sent, but arrived under ${different.size} Message-IDs`);
      }
    },
    async close() {
      await Promise.all([names.close(), extraHouse.close(), mail.close()]);
      await server.close();
    },
  };
}
