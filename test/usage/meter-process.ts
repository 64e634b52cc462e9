// A process with a meter of its own: node meter-process.ts DATABASE_URL KEY_ID CALLS; prints how many were admitted.
import { connect } from "../../src/db/client.ts";
import { Meter } from "../../src/usage/meter.ts";
import { consumeCalls } from "../../src/usage/store.ts";

const [url = "", keyId = "", calls = ""] = process.argv.slice(2);
const sql = connect(url, { name: "meter", max: 1 });
const meter = new Meter((batch) => consumeCalls(sql, batch));
await sql`select 1`;
process.send?.("ready");
await new Promise((go) => process.once("message", go));
const verdicts = await Promise.all(
  Array.from({ length: Number(calls) }, () => meter.consume({ keyId: BigInt(keyId), endpoint: "rounds" })),
);
process.send?.(verdicts.filter(({ outcome }) => outcome === "ok").length);
await sql.end();
process.disconnect();
