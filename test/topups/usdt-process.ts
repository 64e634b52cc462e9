// A process that takes one turn of the watcher when it is told to: node usdt-process.ts DATABASE_URL NAME; its environment has the settings.
import { loadSettings } from "../../src/config/environment.ts";
import { connect } from "../../src/db/client.ts";
import { createLog } from "../../src/log.ts";
import { openEndpoints } from "../../src/topups/usdt/endpoints/endpoint.ts";
import { usdtOf } from "../../src/config/usdt.ts";
import { watchDeposits } from "../../src/topups/usdt/watch.ts";

const [url = "", name = ""] = process.argv.slice(2);
const sql = connect(url, { name, max: 2 });
const usdt = usdtOf(loadSettings())!;
const { signal } = new AbortController();
await sql`select 1`;
process.send?.("ready");
await new Promise((go) => process.once("message", go));
const log = createLog("silent", false);
const endpoints = openEndpoints(usdt.chain, usdt.rpcUrls, signal);
process.send?.(await watchDeposits({ sql, usdt, endpoints, log, signal }));
await sql.end();
process.disconnect();
