import type { Sql } from "../../src/db/client.ts";
import { queueMail } from "../../src/mail/outbox-store.ts";
import { openProxy, type Proxy } from "../support/proxy.ts";
import { startMailServer } from "../support/mail-server.ts";
import { type NameServer, startNameServer } from "../support/name-server.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import { type ExtraHouse, serveExtraHouse } from "./extra-house.ts";
import { DOMAIN } from "./houses-file.ts";
import type { Truth } from "./truth.ts";
import { until } from "./wait-until.ts";

/** What Roundhouse depends on besides PostgreSQL, Redis and houses: real servers that can be late or away. */
export interface ExternalServices {
  names: NameServer;
  mail: Proxy;
  crowd: ExtraHouse;
  /** Settings that make processes use them. */
  env: Record<string, string>;
  /** Leaves so many mails to be sent. */
  queueMails(sql: Sql, count: number): Promise<void>;
  /**
   * Waits until every mail that was left is sent; those that wait for their next attempt get it now, as `/ops/mails` gives it.
   * @throws Broken if one is not sent, is given up, or arrived as another mail when it was sent twice
   */
  checkMails(sql: Sql): Promise<void>;
  close(): Promise<void>;
}

const RECIPIENTS = "mails.example";
const SENT_WITHIN_MS = 60_000;

/** Starts them, and makes the names of all houses known. */
export async function startExternalServices(truth: Truth): Promise<ExternalServices> {
  const [names, crowd, server] = await Promise.all([startNameServer(), serveExtraHouse(), startMailServer()]);
  const mail = await openProxy(() => server.port);
  for (const house of truth.houseFaults.keys()) names.on(`${house}.${DOMAIN}`, [{ a: "127.0.0.1" }]);
  let left = 0;
  return {
    names,
    mail,
    crowd,
    env: { HOUSE_NAME_SERVERS: names.address, SMTP_URL: `smtp://127.0.0.1:${mail.port}` },
    async queueMails(sql, count) {
      for (let n = 0; n < count; n++, left++) {
        await queueMail(sql, {
          kind: "simulated",
          recipient: `m${left}@${RECIPIENTS}`,
          subject: `Mail ${left}`,
          body: "of a simulation",
        });
      }
    },
    async checkMails(sql) {
      await until("a mail that was left is not sent", SENT_WITHIN_MS, async () => {
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
      for (let n = 0; n < left; n++) {
        const of = ids.get(`m${n}@${RECIPIENTS}`) ?? [];
        const different = new Set(of.map(({ headers }) => headers.get("message-id")));
        if (different.size !== 1)
          throw new InvariantViolation(`mail ${n} is sent, and arrived as ${different.size} mails`);
      }
    },
    async close() {
      await Promise.all([names.close(), crowd.close(), mail.close()]);
      await server.close();
    },
  };
}
