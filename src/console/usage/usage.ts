import { z } from "zod";
import { csvText } from "../../csv.ts";
import { PageError } from "../../frame/errors.ts";
import { callsFigure } from "../../frame/figure.ts";
import { listKeyDays } from "../../usage/by-key-store.ts";
import { readUsage } from "../../usage/store.ts";
import { consolePage } from "../contract.ts";
import { sumByEndpoint, sumByKey, total } from "./sums.ts";

/** Rows of the largest table on the page; a file has all of them. */
const ROWS_SHOWN = 60;
/** Names of keys on the page: an account has five at a time, and those before them. */
const KEYS_SHOWN = 20;
/** What a file holds at most: five keys and five endpoints on 92 days are 2,300 rows. */
const ROWS_IN_FILE = 50_000;

const LIMITS = "expected 1 to 92 days";
const query = z.object({
  days: z.coerce.number("expected a number of days").int().min(1, LIMITS).max(92, LIMITS).default(31),
});

/** What was called: by day, by key and by endpoint, of up to 92 UTC days. */
export const usagePage = consolePage({
  path: "/usage",
  nav: { label: "Usage", order: 22, group: "API" },
  query,
  async show({ sql, log }, { holder: { accountId }, query: { days } }) {
    const [usage, rows] = await Promise.all([readUsage(sql, accountId, days), listKeyDays(sql, accountId, days)]);
    const keys = sumByKey(rows);
    const data = {
      days,
      figure: await callsFigure(log, "Your calls by day", usage.days),
      total: total(usage.days),
      byKey: keys.slice(0, KEYS_SHOWN),
      keys: keys.length,
      byEndpoint: sumByEndpoint(rows),
      rows: rows.slice(0, ROWS_SHOWN),
      all: rows.length,
    };
    const header = {
      lead: "What was counted against your plan.",
      more: [
        { label: "Requests of the last hours", href: "/console/requests" },
        { label: "Download as CSV", href: `/console/usage/usage.csv?days=${days}` },
      ],
    };
    return { template: "usage/usage", title: "Usage", data, header };
  },
});

/** The same as a file, a row for each day, key and endpoint. */
export const usageFile = consolePage({
  path: "/usage/usage.csv",
  query,
  async show({ sql }, { holder: { accountId }, query: { days } }) {
    const rows = await listKeyDays(sql, accountId, days);
    if (rows.length > ROWS_IN_FILE) {
      throw new PageError(
        422,
        `expected at most ${ROWS_IN_FILE} rows in a file, found ${rows.length}; ask for fewer days`,
      );
    }
    const head = ["utc_day", "key", "key_last4", "endpoint", "calls"];
    const lines = rows.map(({ date, keyName, last4, endpoint, requests }) => [
      date,
      keyName,
      last4,
      endpoint,
      String(requests),
    ]);
    return { file: "usage.csv", type: "text/csv", text: csvText([head, ...lines]) };
  },
});
