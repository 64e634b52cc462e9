import { z } from "zod";
import { ENDPOINTS_TO_TRY } from "../first-call/endpoints.ts";
import { type CallKind, type CallsOfMinute, listCallKinds, listCallMinutes } from "../../usage/call-minute-store.ts";
import { consolePage } from "../contract.ts";
import { outcomeOf } from "../outcomes.ts";
import { buckets, sumKinds } from "./sums.ts";

const REFRESH_SECONDS = 5;
/** Combinations of key, endpoint and outcome: ten keys with six endpoints and ten outcomes are 600. */
const MOST_KINDS = 1_000;
/** Minutes in the table; the chart has all of them. */
const MOST_MINUTES = 60;
const POINTS = 60;

/** Periods, in minutes. */
const WINDOWS = { 15: "15 minutes", 60: "hour", 180: "3 hours", 720: "12 hours", 1440: "24 hours" } as const;

const query = z.object({
  minutes: z.enum(Object.keys(WINDOWS) as [string, ...string[]]).default("60"),
  key: z
    .string()
    .regex(/^\d{0,18}$/, "expected the id of a key, as the list has it")
    .default(""),
  endpoint: z.string().max(40).default(""),
});

/** The requests of the last hours by minute, key, endpoint and status, with why some were refused. */
export const requestsPage = consolePage({
  path: "/requests",
  nav: { label: "Requests", order: 21, group: "API" },
  query,
  async show({ sql }, { holder: { accountId }, query: { minutes: window, key, endpoint } }) {
    const minutes = Number(window);
    const filter = { minutes, keyId: key === "" ? null : BigInt(key), endpoint: endpoint === "" ? null : endpoint };
    const [all, kinds, byMinute] = await Promise.all([
      listCallKinds(sql, accountId, { minutes: 1_440 }, MOST_KINDS),
      listCallKinds(sql, accountId, filter, MOST_KINDS),
      listCallMinutes(sql, accountId, filter),
    ]);
    const data = {
      window: WINDOWS[minutes as keyof typeof WINDOWS],
      ...groupsOf(kinds),
      ...plotsOf(byMinute, minutes),
      minutes: byMinute.slice(0, MOST_MINUTES),
      minutesInAll: byMinute.length,
      fields: fieldsOf(all, { window, key, endpoint }),
    };
    const header = {
      lead: "What your programs requested in the last hours, a few seconds after each request. Counted calls are on Usage.",
      more: [{ label: "Usage by day", href: "/console/usage" }],
    };
    return { template: "requests/requests", title: "Requests", data, header, refreshSeconds: REFRESH_SECONDS };
  },
});

function groupsOf(kinds: readonly CallKind[]) {
  const outcomes = sumKinds(kinds, ({ outcome }) => outcome).map((one) => ({ ...one, ...outcomeOf(one.name) }));
  const total = (isWanted: (code: string) => boolean) =>
    outcomes.filter(({ name }) => isWanted(name)).reduce((sum, { n }) => sum + n, 0);
  return {
    outcomes,
    byKey: sumKinds(kinds, ({ keyName, last4 }) => `${keyName} (…${last4})`),
    byEndpoint: sumKinds(kinds, ({ endpoint }) => endpoint),
    refused: kinds
      .filter(({ outcome }) => outcomeOf(outcome).isRefused)
      .map((kind) => ({ ...kind, ...outcomeOf(kind.outcome) })),
    ok: total((name) => name === "ok"),
    notModified: total((name) => name === "not_modified"),
    refusedInAll: total((name) => outcomeOf(name).isRefused),
  };
}

function plotsOf(byMinute: readonly CallsOfMinute[], minutes: number) {
  const nowMs = Date.now();
  const series = (value: (one: CallsOfMinute) => number) =>
    buckets(
      byMinute.map((one) => ({ atMs: Date.parse(one.at), value: value(one) })),
      { nowMs, minutes, points: POINTS },
    );
  return { successes: series(({ ok }) => ok), refusals: series(({ refused }) => refused) };
}

function fieldsOf(all: readonly CallKind[], chosen: { window: string; key: string; endpoint: string }) {
  const keys = [...new Map(all.map(({ keyId, keyName, last4 }) => [String(keyId), `${keyName} (…${last4})`]))];
  const any = { value: "", label: "any" };
  return [
    {
      name: "minutes",
      label: "Last",
      type: "select",
      value: chosen.window,
      unset: "60",
      options: Object.entries(WINDOWS).map(([value, label]) => ({ value, label })),
    },
    {
      name: "key",
      label: "Key",
      type: "select",
      value: chosen.key,
      options: [any, ...keys.map(([value, label]) => ({ value, label }))],
    },
    {
      name: "endpoint",
      label: "Endpoint",
      type: "select",
      value: chosen.endpoint,
      options: [any, ...ENDPOINTS_TO_TRY.map(({ name }) => ({ value: name, label: name }))],
    },
  ];
}
