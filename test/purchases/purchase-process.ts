// A process that buys when it is told to: node purchase-process.ts DATABASE_URL NAME; the order comes as a message.
import { connect } from "../../src/db/client.ts";
import type { Order } from "../../src/purchases/check-order.ts";
import { purchase } from "../../src/purchases/purchase-store.ts";

const [url = "", name = ""] = process.argv.slice(2);
const sql = connect(url, { name, max: 1 });
await sql`select 1`;
process.send?.("ready");
const order = await new Promise<Order>((go) => process.once("message", (message) => go(message as Order)));
process.send?.(await purchase(sql, order));
await sql.end();
process.disconnect();
