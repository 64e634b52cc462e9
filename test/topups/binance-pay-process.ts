// A process that does one step and is killed in it: node binance-pay-process.ts DATABASE_URL NAME; what to do comes as a message.
import pino from "pino";
import settleTopups from "../../jobs/settle-topups.ts";
import type { Settings } from "../../src/config/environment.ts";
import { connect } from "../../src/db/client.ts";
import type { JobContext } from "../../src/queue/job.ts";
import { acceptNotice } from "../../src/topups/binance-pay/notice.ts";

/** Either a turn of the worker, or a notice that came. */
export interface Task {
  settings: Settings;
  of?: string;
  notice?: { headers: Record<string, string>; body: string };
}

const [url = "", name = ""] = process.argv.slice(2);
const sql = connect(url, { name, max: 1 });
const log = pino({ level: "silent" });
await sql`select 1`;
process.send?.("ready");
const task = await new Promise<Task>((go) => process.once("message", (message) => go(message as Task)));
if (task.notice !== undefined) {
  const headers = Object.fromEntries(
    Object.entries(task.notice.headers).map(([key, value]) => [key.toLowerCase(), value]),
  );
  process.send?.(await acceptNotice(sql, log, { headers, body: Buffer.from(task.notice.body) }));
} else {
  const context = { sql, log, settings: task.settings, signal: new AbortController().signal };
  process.send?.(await settleTopups.run({ of: task.of ?? "" }, context as JobContext));
}
await sql.end();
process.disconnect();
