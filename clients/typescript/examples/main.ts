/** Prints every table's forecast, what such forecasts have been worth, what the calls cost, and checks the public log. */
import { Roundhouse } from "../src/index.ts";
import { report } from "./report.ts";

const { ROUNDHOUSE_URL: url = "http://127.0.0.1:3000", ROUNDHOUSE_KEY: key } = process.env;
if (key === undefined) throw new Error("expected a key in ROUNDHOUSE_KEY; `npm start` of Roundhouse prints one");

const api = new Roundhouse({ url, key });
const [forecasts, accuracy] = [await api.forecasts(), await api.accuracy({ feature: "next_color" })];
console.log(report(forecasts, accuracy));
const { day } = await api.usage();
console.log(`${day.requests} calls today, ${day.remaining ?? "any number"} left`);
const { size } = await api.checkLog();
console.log(`the public log has ${size} entries and contains all that was seen of it before`);
console.log(forecasts.notice);
