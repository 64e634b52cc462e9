import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import settleTopups from "../../jobs/settle-topups.ts";
import { notifySurface } from "../../src/console/top-up/notify.ts";
import { walletMicros } from "../../src/ledger/store.ts";
import { openConsoleWorld, type ConsoleWorld } from "../console/world.ts";
import { testContext } from "../support/context.ts";
import { KEY, type Provider, SECRET, type SentNotice, startProvider } from "../support/payment-app.ts";

/** The payment app, a console, the place where it sends its notices, and the worker between. */
export interface PayWorld extends ConsoleWorld {
  provider: Provider;
  /** Sends a notice; gives the status and the answer. */
  send(notice: SentNotice): Promise<[number, { returnCode: string; returnMessage: string | null }]>;
  /** What a worker does of all that is to be done now, summed up. */
  work(): Promise<Record<string, number>>;
  /** Lets the time pass until the next look at the order of a top-up. */
  wait(topupId: string): Promise<void>;
  wallet(accountId: bigint): Promise<bigint>;
  notifyUrl: string;
}

export async function openPayWorld(): Promise<PayWorld> {
  const provider = await startProvider();
  const variables = { BINANCE_PAY_URL: provider.url, BINANCE_PAY_KEY: KEY, BINANCE_PAY_SECRET: SECRET };
  const world = await openConsoleWorld({ variables });
  const { sql, settings } = world;
  const { context } = testContext(sql, { env: { ...variables, PUBLIC_URL: "https://round.example/" } });
  const notify = createServer(notifySurface({ sql, settings, log: context.log }).listener()).listen(0, "127.0.0.1");
  await once(notify, "listening");
  const notifyUrl = `http://127.0.0.1:${(notify.address() as AddressInfo).port}/topups/binance-pay/notify`;
  return {
    ...world,
    provider,
    notifyUrl,
    async send({ headers, body }) {
      const response = await fetch(notifyUrl, { method: "POST", headers, body });
      return [response.status, (await response.json()) as { returnCode: string; returnMessage: string | null }];
    },
    async work() {
      const sum: Record<string, number> = {};
      for (const payload of (await settleTopups.sweep?.(context)) ?? []) {
        for (const [name, count] of Object.entries(await settleTopups.run(payload, context))) {
          sum[name] = (sum[name] ?? 0) + count;
        }
      }
      return sum;
    },
    async wait(topupId) {
      await sql`update payment_app_orders set ask_at = now() where ask_at is not null and topup_id = ${topupId}`;
    },
    wallet: (accountId) => walletMicros(sql, accountId),
    async close() {
      notify.closeAllConnections();
      notify.close();
      await provider.close();
      await world.close();
    },
  };
}
