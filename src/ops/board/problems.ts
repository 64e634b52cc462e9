import type { Pause, ReportedWorker } from "../../queue/runs/inspect.ts";
import { MOST_ATTEMPTS } from "../../backfill/gap-plan.ts";
import { duration, type Tone, timeText } from "../../frame/text/format.ts";
import type { HouseFacts } from "../../health/house-facts-store.ts";
import { type OpenFacts, type TableFacts, tableName } from "../../health/table-facts-store.ts";
import { HOUSE_ALERTS, houseProblem } from "./house-problem.ts";
import type { OpenAlert, OpenNotice } from "./open-store.ts";

/** Something that is wrong now. */
export interface Problem {
  /** The stable name of its cause, such as `gaps` or `alert_disk`. With the subject it identifies the problem. */
  kind: string;
  tone: Tone;
  /** A house, a table, or what else it is about. */
  subject: string;
  /** The page with its evidence; empty for a group whose members have none in common. */
  href: string;
  /** In a few words. */
  what: string;
  since: Date | null;
  why: string;
  /** What happens without anybody's action, and when. */
  doing: string;
  /** The text of the link to `href`: a verb and its object. */
  action: string;
}

/** One place of a problem that several places have. */
export type Place = Pick<Problem, "subject" | "href" | "since" | "why">;

/** Equal problems as one. `places` is empty for a problem of one place; `members` are the problems it combines. */
export interface GroupedProblem extends Problem {
  places: Place[];
  members: Problem[];
}

/** The facts in which problems are found. */
export interface ProblemFacts {
  houses: readonly HouseFacts[];
  tables: readonly TableFacts[];
  open: readonly OpenFacts[];
  notices: readonly OpenNotice[];
  alerts: readonly OpenAlert[];
  pauses: readonly Pause[];
  workers: readonly ReportedWorker[];
  /** Milliseconds since the reconciler last reported; null before its first report. */
  reconciledMsAgo: number | null;
  /** Parts of the reconciler that fail, by name: the error of each. */
  reconcilerErrors: Readonly<Record<string, string>>;
  liveWindowSeconds: number;
  now: Date;
}

const RANKS: readonly Tone[] = ["bad", "warn", "info"];
/** Workers report every five seconds. */
const SILENT_MS = 20_000;
/** Notices of tables that repeat a problem of their house. */
const OF_HOUSE = new Set(["stalled"]);
/** Notices that mean that published data may be wrong, and not only late. */
const GRAVE = new Set(["proof", "format", "stuck", "ids"]);

/** Returns what is wrong now, the worst first. Of equal severity: the whole system, houses, tables; each newest first. */
export function findProblems(facts: ProblemFacts): Problem[] {
  const houses = facts.houses.flatMap((house) => houseProblem(house, facts) ?? []);
  const wrong = new Set(houses.map(({ subject }) => subject));
  const tables = tableProblems(facts, wrong);
  const noticed = new Set(facts.notices.map(({ tableId, kind }) => `${tableId} ${kind}`));
  const idOf = new Map(facts.tables.map((table) => [tableName(table), table.id]));
  const rest = facts.alerts.filter(({ subject, kind }) => {
    if (HOUSE_ALERTS.has(kind)) return !wrong.has(subject);
    const notice = NOTICE_OF_ALERT[kind];
    if (notice !== undefined) return !noticed.has(`${idOf.get(subject)} ${notice}`);
    return !FOUND_BY_SYSTEM.has(kind);
  });
  const newest = (problems: readonly Problem[]) =>
    problems.toSorted((a, b) => Number(b.since ?? 0) - Number(a.since ?? 0));
  return [systemProblems(facts), houses, tables, rest.map(alertProblem)]
    .flatMap(newest)
    .toSorted((a, b) => RANKS.indexOf(a.tone) - RANKS.indexOf(b.tone));
}

/** From this number on equal problems are shown as one: three lines fit, seven push everything else off the screen. */
const GROUPED_FROM = 3;

/** Groups problems of one severity and cause, in the position of the first of them. A group is as old as its oldest member. */
export function groupProblems(problems: readonly Problem[]): GroupedProblem[] {
  const causeOf = ({ tone, what }: Problem) => `${tone} ${what.replace(/^\d+ /, "").replace(/^a gap$/, "gaps")}`;
  return [...Map.groupBy(problems, causeOf).values()].flatMap((equal): GroupedProblem[] => {
    const [first] = equal;
    if (first === undefined || equal.length < GROUPED_FROM)
      return equal.map((one) => ({ ...one, places: [], members: [one] }));
    const times = equal.flatMap(({ since }) => since ?? []);
    return [
      {
        ...first,
        subject: `${equal.length} places`,
        href: commonPage(equal),
        what: first.what.replace(/^\d+ /, "").replace(/^a gap$/, "gaps"),
        since: times.length === 0 ? null : new Date(Math.min(...times.map(Number))),
        places: equal.map(({ subject, href, since, why }) => ({ subject, href, since, why })),
        members: equal,
      },
    ];
  });
}

/** The page that lists all of these problems: theirs without the filter by table; empty if they have no page in common. */
function commonPage(problems: readonly Problem[]): string {
  const pages = new Set(problems.map(({ href }) => href.replace(/(?<=\?)of=[^&]*&?/, "").replace(/\?$/, "")));
  const [page = ""] = pages;
  return pages.size === 1 ? page : "";
}

/** Alerts of tables that repeat an open notice of this kind. */
const NOTICE_OF_ALERT: Record<string, string> = { responses_unreadable: "format", "proof mismatch": "proof" };

/** Alerts that repeat what systemProblems finds. */
const FOUND_BY_SYSTEM = new Set(["no_leader", "clock_skew"]);

function systemProblems({ workers, pauses, reconciledMsAgo, reconcilerErrors, now }: ProblemFacts): Problem[] {
  const found: Problem[] = [];
  const alive = workers.filter(({ seenAt }) => now.getTime() - seenAt.getTime() < SILENT_MS);
  const of = (kind: string, subject: string) => {
    return { kind, subject, tone: "bad" as const, href: "/ops/workers", action: "Open workers" };
  };
  if (alive.length === 0) {
    const last = workers.map(({ seenAt }) => seenAt.getTime());
    const since = last.length === 0 ? null : new Date(Math.max(...last));
    const why = "No worker process reports, so nothing is polled, read, forecast or scored.";
    const doing = "nothing happens until a worker is started";
    found.push({ ...of("no_worker", "workers"), what: "no worker is running", since, why, doing });
  } else if (reconciledMsAgo === null || reconciledMsAgo > 60_000) {
    const since = reconciledMsAgo === null ? null : new Date(now.getTime() - reconciledMsAgo);
    const why = "No worker is the leader, so schedules, pauses and lost jobs are not reconciled.";
    const doing = "every worker tries to become the leader every 5 s; restart one if none does";
    found.push({ ...of("no_leader", "workers"), what: "queues are not reconciled", since, why, doing });
  }
  for (const [part, error] of Object.entries(alive.length === 0 ? {} : reconcilerErrors)) {
    const doing = "retried every 5 s";
    found.push({ ...of("reconciler", part), what: "reconciliation fails", since: null, why: error, doing });
  }
  for (const { host, clockProblem } of alive) {
    if (clockProblem === null) continue;
    const doing = "it takes no work until its clock is right; it checks once a minute";
    found.push({ ...of("clock", host), what: "wrong clock", since: null, why: clockProblem, doing });
  }
  for (const { queue, pausedBy, pausedAt, reason, until } of pauses) {
    found.push({
      kind: "queue_paused",
      tone: "warn",
      subject: queue,
      href: `/ops/queues/${queue}`,
      action: "Open queue",
      what: `queue paused by ${pausedBy}`,
      since: pausedAt,
      why: reason,
      doing: until === null ? "paused until an operator resumes it" : `resumes at ${timeText(until)}`,
    });
  }
  return found;
}

function tableProblems({ tables, open, notices, now }: ProblemFacts, wrongHouses: ReadonlySet<string>): Problem[] {
  const byId = new Map(tables.map((table) => [table.id, table]));
  const openOf = new Map(open.map((one) => [one.tableId, one]));
  const noticed = mergedByHouse(notices, byId).flatMap(({ tableId, kind, text, openedAt, house }): Problem[] => {
    const table = byId.get(tableId);
    if (table === undefined || kind === "gap" || (OF_HOUSE.has(kind) && wrongHouses.has(table.house))) return [];
    const subject = house ?? tableName(table);
    return [
      {
        kind: `notice_${kind}`,
        tone: kind === "operator" ? "info" : GRAVE.has(kind) ? "bad" : "warn",
        subject,
        ...evidenceOf(kind, subject),
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
        kind: "gaps",
        tone: "warn" as const,
        subject,
        href: `/ops/gaps?of=${encodeURIComponent(subject)}&state=open`,
        action: "Open gaps",
        what: n === 1 ? "a gap" : `${n} gaps`,
        since: gapSince,
        why:
          missing > 0
            ? `${missing} ${missing === 1 ? "round is" : "rounds are"} missing`
            : "An unknown number of rounds is missing",
        doing: `backfill attempt ${attempt} of ${MOST_ATTEMPTS} ${when}`,
      },
    ];
  });
  return [...noticed, ...gaps];
}

/** Notices by staff that tables of one house have in common, as one notice of the house; the others as they are. */
function mergedByHouse(
  notices: readonly OpenNotice[],
  tables: ReadonlyMap<number, TableFacts>,
): (OpenNotice & { house?: string })[] {
  const houseOf = ({ tableId }: OpenNotice) => tables.get(tableId)?.house;
  const keyOf = (notice: OpenNotice) =>
    notice.kind === "operator" ? `${houseOf(notice)} ${notice.text}` : `${notice.tableId} ${notice.kind}`;
  return [...Map.groupBy(notices, keyOf).values()].flatMap((equal) => {
    const [first] = equal;
    const house = first === undefined ? undefined : houseOf(first);
    return first === undefined || house === undefined || equal.length === 1 ? equal : [{ ...first, house }];
  });
}

function alertProblem({ kind, subject, text, openedAt }: OpenAlert): Problem {
  const isTable = /^[\w-]+\/[\w-]+\/[\w-]+$/.test(subject);
  const known = ALERTS[kind];
  return {
    kind: `alert_${kind.replaceAll(/[^\w-]/g, "_")}`,
    tone: "bad",
    subject: subject === "" ? kind : subject,
    href: known?.href ?? (isTable ? `/ops/tables/${subject}` : "/ops/workers"),
    what: known?.what ?? `alert: ${kind.replaceAll("_", " ")}`,
    since: openedAt,
    why: text,
    doing: "the alert closes when its cause is gone",
    action: known?.action ?? (isTable ? "Open table" : "Open workers"),
  };
}

/** The names of alerts, and where to act on them. */
const ALERTS: Record<string, { what: string; href: string; action: string }> = {
  usdt: { what: "chain endpoint or deposit", href: "/ops/deposits", action: "Open deposits" },
  "payment-app": { what: "payment app", href: "/ops/payment-app", action: "Open payment app" },
  topup: { what: "top-up needs a decision", href: "/ops/payment-app", action: "Open payment app" },
  mail_server: { what: "mail server", href: "/ops/mails", action: "Open mails" },
  mail_refused: { what: "mails refused", href: "/ops/mails", action: "Open mails" },
  mail_late: { what: "mails are late", href: "/ops/mails", action: "Open mails" },
  mail_given_up: { what: "mails not sent", href: "/ops/mails", action: "Open mails" },
  staff_webhook: { what: "staff webhook", href: "/ops/workers", action: "Open workers" },
  bank_approval: { what: "bank transfer to approve", href: "/ops/bank", action: "Open bank transfers" },
  suspense: { what: "money in suspense", href: "/ops/bank?state=suspense", action: "Open bank transfers" },
  ledger: { what: "ledger does not add up", href: "/ops/ledger", action: "Open ledger" },
  housekeep: { what: "housekeeping failed", href: "/ops/queues/housekeep", action: "Open queue" },
  calibration_failed: { what: "calibration failed", href: "/ops/queues/calibrate-table", action: "Open queue" },
  disk: { what: "disk nearly full", href: "/ops/workers", action: "Open workers" },
  backlog: { what: "responses not read", href: "/ops/payloads?state=unread", action: "Open payloads" },
  log: { what: "transparency log not signed", href: "/ops/queues", action: "Open queues" },
  log_behind: { what: "transparency log behind", href: "/ops/queues", action: "Open queues" },
  usage_behind: { what: "usage roll-up behind", href: "/ops/queues", action: "Open queues" },
  usage: { what: "usage counts differ", href: "/ops/callers", action: "Open callers" },
  not_polled: { what: "not polled", href: "/ops/queues/poll-house", action: "Open queue" },
  partitions: { what: "partition missing", href: "/ops/queues/housekeep", action: "Open queue" },
  redis_lost: { what: "Redis lost its data", href: "/ops/queues", action: "Open queues" },
};

const WHAT: Record<string, string> = {
  conflict: "a round has two results",
  proof: "a proof is wrong",
  stalled: "no new round",
  stuck: "the feed repeats itself",
  format: "responses cannot be read",
  quarantine: "items in quarantine",
  ids: "new rounds have old numbers",
  operator: "notice by staff",
};

const DOING: Record<string, string> = {
  conflict: "the first result is used until staff decide",
  proof: "its rounds are marked as not proven; staff decide the rest",
  stalled: "polling continues; the notice closes with the next round",
  stuck: "polling continues; forecasts are issued again after a new round",
  format: "every response is stored; the notice closes with the first readable one, and the others are reread manually",
  ids: "no forecasts are issued; if the number or time of the newest round is wrong, reset it on the page of the table",
  quarantine: "staff discard or release them; until then they are stored with their reasons",
};

/** The page with the evidence of a notice, and the text of the link to it. */
function evidenceOf(kind: string, table: string): Pick<Problem, "href" | "action"> {
  const of = `of=${encodeURIComponent(table)}`;
  if (kind === "ids") return { href: `/ops/tables/${table}#notices`, action: "Open table" };
  if (kind === "conflict") return { href: `/ops/conflicts?${of}`, action: "Decide conflicts" };
  if (kind === "quarantine") return { href: `/ops/quarantine?${of}`, action: "Decide items" };
  if (kind === "format") return { href: `/ops/payloads?${of}&state=refused`, action: "Open payloads" };
  return { href: `/ops/notices?${of}`, action: "Open notices" };
}
