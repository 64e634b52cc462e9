/** Prints what is said of every table and what such forecasts have been worth; then what it cost. */
import { report } from "./report.ts";
import { roundhouse } from "./roundhouse.ts";

const { ROUNDHOUSE_URL: url = "http://127.0.0.1:3000", ROUNDHOUSE_KEY: key } = process.env;
if (key === undefined) throw new Error("expected a key in ROUNDHOUSE_KEY; `npm start` prints one");

const api = roundhouse({ url, key });
console.log(report(await api.forecasts(), await api.accuracy("next_color")));
const { day } = await api.usage();
console.log(`${day.requests} calls today, ${day.remaining ?? "any number"} left`);
console.log("Information only; no outcome is guaranteed. 18+.");
