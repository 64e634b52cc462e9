import type { Pause, ReportedWorker } from "../../queue/inspect.ts";
import { MOST_ATTEMPTS } from "../../backfill/gap-plan.ts";
import { duration, type Tone, timeText } from "../../frame/format.ts";
import type { HouseFacts } from "./house-facts-store.ts";
import { houseProblem } from "./house-problem.ts";
import type { OpenAlert, OpenFacts, OpenNotice } from "./open-store.ts";
import { tableName } from "./rows.ts";
import type { TableFacts } from "./table-facts-store.ts";

/** Something that is wrong now, for whoever has five seconds. */
export interface Problem {
  tone: Tone;
  /** A house, a table, or what else it is about. */
  subject: string;
  /** Where its evidence is. */
  href: string;
  /** In a few words. */
  what: string;
  since: Date | null;
  why: string;
  /** What is being done about it without anybody, and when. */
  doing: string;
  /** What the link to the evidence is called, such as "See gaps". */
  action?: string;
}

/** One place of a problem that several places have. */
export type Place = Pick<Problem, "subject" | "href" | "since" | "why">;

/** Equal problems as one; `places` is empty for a problem of one place. */
export interface GroupedProblem extends Problem {
  places: Place[];
}

/** All that problems are found in. */
export interface ProblemFacts {
  houses: readonly HouseFacts[];
  tables: readonly TableFacts[];
  open: readonly OpenFacts[];
  notices: readonly OpenNotice[];
  alerts: readonly OpenAlert[];
  pauses: readonly Pause[];
  workers: readonly ReportedWorker[];
  /** Since the reconciler was last alive; null before it ever was. */
  reconciledMsAgo: number | null;
  /** Parts of the reconciler that fail, by name: the error of each. */
  reconcilerErrors: Readonly<Record<string, string>>;
  liveWindowSeconds: number;
  now: Date;
}

const RANKS: readonly Tone[] = ["bad", "warn", "info"];
/** A worker that did not report for three ticks of five seconds is in trouble. */
const SILENT_MS = 20_000;
/** Notices that say of a table what is already said of its house. */
const OF_HOUSE = new Set(["stalled"]);
/** Kinds of notices that mean that what is shown may be wrong, not only late. */
const GRAVE = new Set(["proof", "format", "stuck", "ids"]);

/** What is wrong now, the worst first: of equally bad things what stops all, then houses, then tables, the newest first. */
export function findProblems(facts: ProblemFacts): Problem[] {
  const houses = facts.houses.flatMap((house) => houseProblem(house, facts) ?? []);
  const wrong = new Set(houses.map(({ subject }) => subject));
  const tables = tableProblems(facts, wrong);
  const noticed = new Set(facts.notices.map(({ tableId, kind }) => `${tableId} ${kind}`));
  const idOf = new Map(facts.tables.map((table) => [tableName(table), table.id]));
  const rest = facts.alerts.filter(({ subject, kind }) => {
    if (kind === "house_offline") return !wrong.has(subject);
    const notice = NOTICE_OF_ALERT[kind];
    if (notice !== undefined) return !noticed.has(`${idOf.get(subject)} ${notice}`);
    return !SAID_OTHERWISE.has(kind);
  });
  const newest = (problems: readonly Problem[]) =>
    problems.toSorted((a, b) => Number(b.since ?? 0) - Number(a.since ?? 0));
  return [systemProblems(facts), houses, tables, rest.map(alertProblem)]
    .flatMap(newest)
    .toSorted((a, b) => RANKS.indexOf(a.tone) - RANKS.indexOf(b.tone));
}

/** So many equal problems are shown as one: three lines still fit, seven push everything else off the screen. */
const GROUPED_FROM = 3;

/** Problems of one severity and cause as one problem with its places, in the place of the first; it is as old as the oldest. */
export function groupProblems(problems: readonly Problem[]): GroupedProblem[] {
  const causeOf = ({ tone, what }: Problem) => `${tone} ${what.replace(/^\d+ /, "").replace(/^a gap$/, "gaps")}`;
  return [...Map.groupBy(problems, causeOf).values()].flatMap((equal): GroupedProblem[] => {
    const [first] = equal;
    if (first === undefined || equal.length < GROUPED_FROM) return equal.map((one) => ({ ...one, places: [] }));
    const times = equal.flatMap(({ since }) => since ?? []);
    return [
      {
        ...first,
        subject: `${equal.length} places`,
        what: first.what.replace(/^\d+ /, "").replace(/^a gap$/, "gaps"),
        since: times.length === 0 ? null : new Date(Math.min(...times.map(Number))),
        places: equal.map(({ subject, href, since, why }) => ({ subject, href, since, why })),
      },
    ];
  });
}

/** Alerts that say of a table what an open notice of this kind says. */
const NOTICE_OF_ALERT: Record<string, string> = { answers_unreadable: "format", "proof mismatch": "proof" };

/** Alerts about what systemProblems finds by itself. */
const SAID_OTHERWISE = new Set(["no_leader", "clock_skew"]);

function systemProblems({ workers, pauses, reconciledMsAgo, reconcilerErrors, now }: ProblemFacts): Problem[] {
  const found: Problem[] = [];
  const alive = workers.filter(({ seenAt }) => now.getTime() - seenAt.getTime() < SILENT_MS);
  const of = (subject: string, href: string) => ({ tone: "bad" as const, subject, href });
  if (alive.length === 0) {
    const last = workers.map(({ seenAt }) => seenAt.getTime());
    const since = last.length === 0 ? null : new Date(Math.max(...last));
    const why = "no worker process reports: nothing is polled, read, forecast or scored";
    const doing = "nothing: start a worker";
    found.push({ ...of("workers", "/ops/workers"), what: "no worker is alive", since, why, doing });
  } else if (reconciledMsAgo === null || reconciledMsAgo > 60_000) {
    const since = reconciledMsAgo === null ? null : new Date(now.getTime() - reconciledMsAgo);
    const why = "no worker leads: schedules, pauses and lost work are not looked after";
    const doing = "every worker tries to lead every five seconds; restart one where none does";
    found.push({ ...of("workers", "/ops/workers"), what: "nobody reconciles the queues", since, why, doing });
  }
  for (const [part, error] of Object.entries(alive.length === 0 ? {} : reconcilerErrors)) {
    const doing = "tried again every five seconds";
    found.push({ ...of(part, "/ops/workers"), what: "reconciliation fails", since: null, why: error, doing });
  }
  for (const { host, clockProblem, seenAt } of alive) {
    if (clockProblem === null) continue;
    const doing = "it takes no work until its clock is right; it looks once a minute";
    found.push({ ...of(host, "/ops/workers"), what: "a clock is wrong", since: seenAt, why: clockProblem, doing });
  }
  for (const { queue, pausedBy, pausedAt, reason, until } of pauses) {
    found.push({
      tone: "warn",
      subject: queue,
      href: "/ops/queues",
      what: `queue paused by ${pausedBy}`,
      since: pausedAt,
      why: reason,
      doing: until === null ? "stands still until somebody lets it go on" : `goes on by itself at ${timeText(until)}`,
    });
  }
  return found;
}

function tableProblems({ tables, open, notices, now }: ProblemFacts, wrongHouses: ReadonlySet<string>): Problem[] {
  const byId = new Map(tables.map((table) => [table.id, table]));
  const openOf = new Map(open.map((one) => [one.tableId, one]));
  const told = notices.flatMap(({ tableId, kind, text, openedAt }): Problem[] => {
    const table = byId.get(tableId);
    if (table === undefined || kind === "gap" || (OF_HOUSE.has(kind) && wrongHouses.has(table.house))) return [];
    const subject = tableName(table);
    return [
      {
        tone: kind === "operator" ? "info" : GRAVE.has(kind) ? "bad" : "warn",
        subject,
        href: hrefOf(kind, subject),
        what: WHAT[kind] ?? kind,
        since: openedAt,
        why: text,
        doing: DOING[kind] ?? "callers see this notice",
      },
    ];
  });
  const gaps = [...openOf.values()].flatMap(({ tableId, gaps: n, missing, gapSince, attempts, nextAttemptAt }) => {
    const table = byId.get(tableId);
    if (n === 0 || table?.enabled !== true) return [];
    const subject = tableName(table);
    const attempt = Math.min(attempts + 1, MOST_ATTEMPTS);
    const when =
      nextAttemptAt === null || nextAttemptAt <= now
        ? "now"
        : `in ${duration((nextAttemptAt.getTime() - now.getTime()) / 1_000)}`;
    return [
      {
        tone: "warn" as const,
        subject,
        href: `/ops/gaps?of=${encodeURIComponent(subject)}&state=open`,
        what: n === 1 ? "a gap" : `${n} gaps`,
        since: gapSince,
        why: missing > 0 ? `${missing} rounds are missing` : "rounds are missing, how many is not known",
        doing: `backfill attempt ${attempt} of ${MOST_ATTEMPTS} ${when}`,
      },
    ];
  });
  return [...told, ...gaps];
}

function alertProblem({ kind, subject, text, openedAt }: OpenAlert): Problem {
  const isTable = /^[\w-]+\/[\w-]+\/[\w-]+$/.test(subject);
  const known = ALERTS[kind];
  return {
    tone: "bad",
    subject: subject === "" ? kind : subject,
    href: known?.href ?? (isTable ? `/ops/tables/${subject}` : "/ops/workers"),
    what: known?.what ?? `alert: ${kind.replaceAll("_", " ")}`,
    since: openedAt,
    why: text,
    doing: "the alert closes by itself when it is over",
    action: known?.action ?? (isTable ? "Open table" : "Open workers"),
  };
}

/** What the kinds of alerts are called, and where to act on them. */
const ALERTS: Record<string, { what: string; href: string; action: string }> = {
  usdt: { what: "chain endpoint or deposit", href: "/ops/deposits", action: "Open deposits" },
  "payment-app": { what: "payment app", href: "/ops/payment-app", action: "Open payment app" },
  topup: { what: "top-up needs a decision", href: "/ops/payment-app", action: "Open payment app" },
  mail_server: { what: "mail server", href: "/ops/mails", action: "Open mails" },
  mail_refused: { what: "mails refused", href: "/ops/mails", action: "Open mails" },
  mail_given_up: { what: "mails not sent", href: "/ops/mails", action: "Open mails" },
  staff_webhook: { what: "staff webhook", href: "/ops/workers", action: "Open workers" },
  "bank-desk": { what: "bank desk", href: "/ops/bank", action: "Open bank desk" },
  ledger: { what: "ledger does not add up", href: "/ops/ledger", action: "Open ledger" },
  disk: { what: "disk nearly full", href: "/ops/workers", action: "Open workers" },
  backlog: { what: "responses not read", href: "/ops/payloads?state=unread", action: "Open payloads" },
  log: { what: "transparency log not signed", href: "/ops/queues", action: "Open queues" },
  log_behind: { what: "transparency log behind", href: "/ops/queues", action: "Open queues" },
  usage_behind: { what: "usage roll-up behind", href: "/ops/queues", action: "Open queues" },
  usage: { what: "usage counts differ", href: "/ops/callers", action: "Open callers" },
  redis_lost: { what: "Redis lost its data", href: "/ops/queues", action: "Open queues" },
};

const WHAT: Record<string, string> = {
  conflict: "a round came with two results",
  proof: "a proof does not hold",
  stalled: "no new round",
  stuck: "the feed repeats itself",
  format: "answers cannot be read",
  quarantine: "items are refused",
  ids: "new rounds come as older ones",
  operator: "a notice by an operator",
};

const DOING: Record<string, string> = {
  conflict: "the first result stands until somebody decides",
  proof: "its rounds are marked as not proven; nothing is changed by itself",
  stalled: "polled as ever; the notice ends with the next round",
  stuck: "polled as ever; forecasts go on only on new rounds",
  format: "every answer is kept; the first that can be read ends it, the others are read again by hand",
  ids: "nothing is forecast; if the newest number is wrong, reset it on the page of the table",
  quarantine: "kept with their reasons until somebody decides",
};

function hrefOf(kind: string, table: string): string {
  const of = `of=${encodeURIComponent(table)}`;
  if (kind === "ids") return `/ops/tables/${table}#notices`;
  if (kind === "conflict") return `/ops/conflicts?${of}`;
  if (kind === "quarantine") return `/ops/quarantine?${of}`;
  if (kind === "format") return `/ops/payloads?${of}&state=refused`;
  return `/ops/notices?${of}`;
}
