import sendMail from "../../jobs/send-mail.ts";
import watchDeposits from "../../jobs/watch-deposits.ts";
import { insertOperator } from "../../src/accounts/operators/operator-store.ts";
import { hashForTests } from "../support/password-hash.ts";
import { startApi } from "../../src/serve/server.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { startConsole } from "../../src/console/start.ts";
import type { Sql } from "../../src/db/client.ts";
import { startOps } from "../../src/ops/start.ts";
import type { Job } from "../../src/queue/job.ts";
import { addRounds, CHECKS, PATIENT } from "../api/world.ts";
import { createWorld } from "../queue/world.ts";
import { startChain, type TestChain, usdtVariables } from "../support/chain.ts";
import { startMailServer, type TestMailServer } from "../support/mail-server.ts";
import { makeTable } from "../support/make.ts";

/** Blocks that confirm a deposit here. */
export const CONFIRMATIONS = 4;
/** The chain is read four times per second, instead of every ten seconds. */
const LOOK_MS = 250;
const SECRET = "a secret of a test, 32 characters at least";

/** All of it together: the site, the console, `/ops` and the API in front, workers, a mail server and a chain behind. */
export interface NewcomerWorld {
  sql: Sql;
  url: string;
  mail: TestMailServer;
  chain: TestChain;
  /** Makes a member of staff who works at the bank desk. */
  makeOperator(email: string, password: string): Promise<void>;
  close(): Promise<void>;
}

export async function openNewcomerWorld(): Promise<NewcomerWorld> {
  const [behind, mail, chain] = await Promise.all([createWorld(), startMailServer(), startChain()]);
  const { sql, databaseUrl: directUrl, redisUrl, log } = behind;
  const table = await makeTable(sql);
  await addRounds(sql, table.name, [{ id: "8812345" }, { id: "8812346", hundredths: 1_250, color: "pink" }]);
  const settings = loadSettings({
    PORT: "0",
    AUTH_SECRET: SECRET,
    SMTP_URL: mail.url,
    MAIL_FROM: "hello@example.com",
    BANK_BENEFICIARY: "Roundhouse Test",
    BANK_IBAN: "DE89370400440532013000",
    BANK_NAME: "Main",
    ...usdtVariables(chain, { urls: [chain.url], confirmations: CONFIRMATIONS }),
  });
  await behind.start([sendMail, oftener(watchDeposits)] as Job<unknown>[], { settings });
  const parts = { sql, settings, log };
  const ops = startOps({
    parts: { ...parts, queues: null, liveWindowSeconds: settings.LIVE_WINDOW_SECONDS },
    directUrl,
    secret: SECRET,
    settings,
    printLink: null,
  });
  const consoleSurface = startConsole({ parts, directUrl, secret: SECRET });
  const api = await startApi({
    sql,
    directUrl,
    redisUrl,
    settings,
    log,
    version: "1.2.3",
    checks: CHECKS,
    times: PATIENT,
    secret: SECRET,
    surfaces: [ops, consoleSurface],
  });
  return {
    sql,
    url: api.url,
    mail,
    chain,
    async makeOperator(email, password) {
      const passwordHash = await hashForTests(password);
      await sql.begin((tx) => insertOperator(tx, { email, role: "operator", passwordHash, by: "test" }));
    },
    async close() {
      await api.close();
      await Promise.all([ops.close(), consoleSurface.close()]);
      await behind.end();
      await Promise.all([mail.close(), chain.stop()]);
    },
  };
}

/** A job as it is, but for its pace. */
function oftener<Payload>(job: Job<Payload>): Job<Payload> {
  const { schedule } = job;
  if (schedule === null) throw new Error(`${job.name} has no schedule`);
  return {
    ...job,
    schedule: async (context) =>
      (await schedule(context)).map(({ payload }) => ({ payload, everyMs: LOOK_MS, offsetMs: 0 })),
  };
}
