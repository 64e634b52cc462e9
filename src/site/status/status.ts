import type { SitePage } from "../send-page.ts";
import { type ShownHouse, shownHouse } from "../home/houses.ts";
import { atom } from "../atom.ts";
import type { Incident, ListedHouse, PollSuccess, SiteNotices, UptimeDay, Work } from "../site-store.ts";
import { shownUptime } from "../uptime.ts";

/** A worker reports every few seconds, the scheduler every five: this is twelve missed reports. */
const SCHEDULER_SILENT_SECONDS = 60;
/** Payloads are read within seconds of their arrival. */
const UNREAD_LATE_SECONDS = 60;
/** From this age on the data that callers get is marked as old. */
const OLD_SECONDS = 15;

/** A page stays below 100 KB, however long the names of houses are. */
const HOUSES_SHOWN = 30;

/** The measured component of each part that the page names. */
const UPTIME_OF: Readonly<Record<string, string>> = {
  API: "api",
  Workers: "polling",
  Scheduling: "scheduling",
  Parsing: "parsing",
};

/** The components whose history the page shows with its parts. */
export const PARTS_MEASURED: readonly string[] = Object.values(UPTIME_OF);

/** What the page needs; a part that could not be loaded is null. */
export interface StatusParts {
  version: string;
  ageSeconds: number;
  liveWindowMs: number;
  houses: { houses: ListedHouse[]; total: number } | null;
  polls: readonly PollSuccess[] | null;
  work: Work | null;
  notices: SiteNotices | null;
  /** Of {@link PARTS_MEASURED}. */
  uptime: readonly UptimeDay[] | null;
  /** Of {@link componentsOf} the houses. */
  houseUptimes: readonly UptimeDay[] | null;
}

/** A part of the service and its state in words. */
export interface PartState {
  name: string;
  word: string;
  tone: "good" | "warn" | "bad";
  text: string;
}

/** The status page, from our own rows. It shows only what callers and visitors may know. */
export function statusPage(parts: StatusParts): SitePage {
  const { version, liveWindowMs, houses, polls, notices, uptime, houseUptimes } = parts;
  const states = [apiState(parts), ...workStates(parts.work)];
  const historyOf = (component: string, days: readonly UptimeDay[] | null) =>
    days &&
    shownUptime(
      days.filter((row) => row.component === component),
      new Date(),
    );
  const byHouse = new Map(polls?.map((one) => [one.house, one]));
  const today = new Date().toISOString().slice(0, 10);
  const todayOf = new Map(houseUptimes?.filter(({ day }) => day === today).map((row) => [row.component, row]));
  const all = houses && houses.houses.map((house) => shownHouse(house, liveWindowMs));
  return {
    path: "/status",
    template: "status/status",
    title: "Status",
    header: { lead: "The current state of the service and its history, from its own records." },
    description:
      "The current state of Roundhouse: which houses are live, the results of polls, and the state of the API and its workers.",
    data: {
      version,
      overall: overallOf(states, parts.work !== null),
      states: states.map((state) => ({ ...state, uptime: historyOf(UPTIME_OF[state.name] ?? "", uptime) })),
      isWorkKnown: parts.work !== null,
      houses: all && {
        total: houses?.total ?? 0,
        houses: firstOf(all).map((house) => ({
          ...house,
          uptime: historyOf(componentOf(house), houseUptimes),
          lastHour: polls && success(byHouse.get(house.id) ?? { good: 0, asked: 0 }),
          today: successOfDay(todayOf.get(componentOf(house))),
        })),
      },
      counted: all && countedBy(all),
      arePollsKnown: polls !== null,
      liveSeconds: liveWindowMs / 1_000,
      notices,
    },
  };
}

/** The measured components of the houses that the page shows. */
export function componentsOf(houses: readonly ListedHouse[], liveWindowMs: number): string[] {
  const shown = firstOf(houses.map((house) => shownHouse(house, liveWindowMs)));
  return shown.map(componentOf).toSorted();
}

function componentOf({ id }: ListedHouse): string {
  return `house:${id}`;
}

/** If there are more houses than a page shows, those that are not live come first. */
function firstOf(houses: readonly ShownHouse[]): readonly ShownHouse[] {
  if (houses.length <= HOUSES_SHOWN) return houses;
  return houses.toSorted((a, b) => Number(a.status === "live") - Number(b.status === "live")).slice(0, HOUSES_SHOWN);
}

/** Summarizes the worst state in one sentence. */
function overallOf(states: readonly PartState[], isWorkKnown: boolean): { tone: PartState["tone"]; text: string } {
  const bad = states.filter(({ tone }) => tone === "bad").map(({ name }) => name.toLowerCase());
  const warn = states.filter(({ tone }) => tone === "warn").map(({ name }) => name.toLowerCase());
  if (bad.length > 0) return { tone: "bad", text: `Not working: ${bad.join(", ")}.` };
  if (warn.length > 0 || !isWorkKnown) return { tone: "warn", text: `Degraded: ${warn.join(", ") || "unknown"}.` };
  return { tone: "good", text: "All parts of the service work." };
}

/** The newest incidents as an Atom feed; an entry is updated when its notice closes. */
export function statusFeed(site: string, incidents: readonly Incident[]): string {
  return atom({
    id: `${site}/status`,
    self: `${site}/status.atom`,
    title: "Roundhouse status",
    entries: incidents.map(({ id, table, simulated, text, openedAt, updatedAt, closedAt }) => ({
      id: `${site}/status#notice-${id}`,
      title: `${table}${simulated ? " (simulated)" : ""}: ${closedAt === null ? "open" : "closed"}`,
      link: `${site}/status#notice-${id}`,
      updated: closedAt ?? updatedAt,
      text: `${text} Opened ${openedAt.toISOString()}${closedAt === null ? "" : `, closed ${closedAt.toISOString()}`}.`,
    })),
  });
}

function apiState({ ageSeconds, work }: StatusParts): PartState {
  const name = "API";
  const age = `Data read ${ageSeconds} s ago`;
  if (work !== null && ageSeconds <= OLD_SECONDS) return { name, word: "responding", tone: "good", text: `${age}.` };
  return {
    name,
    word: "serving cached data",
    tone: "warn",
    text: `The database does not respond in time. ${age}. Callers with the newest response get a 304; other calls get an error with the time to retry.`,
  };
}

/** The states of the work behind the API; empty if it could not be read. */
export function workStates(work: Work | null): PartState[] {
  if (work === null) return [];
  const { workers, wrongClocks, scheduledAgo, pausedQueues, unreadFor } = work;
  const seconds = (value: number) => `${Math.round(value)} s`;
  const able = workers - wrongClocks;
  const isScheduled = scheduledAgo !== null && scheduledAgo < SCHEDULER_SILENT_SECONDS;
  const isRead = unreadFor === null || unreadFor < UNREAD_LATE_SECONDS;
  return [
    {
      name: "Workers",
      word: able > 0 ? "running" : "silent",
      tone: able > 0 ? "good" : "bad",
      text:
        able > 0
          ? `${able} ${able === 1 ? "process" : "processes"} reported in the last 30 s.`
          : "No worker reported in the last 30 s: nothing is polled or forecast until one does. The API still serves stored data.",
    },
    {
      name: "Scheduling",
      word: isScheduled ? (pausedQueues > 0 ? "partly paused" : "running") : "silent",
      tone: isScheduled ? (pausedQueues > 0 ? "warn" : "good") : "bad",
      text:
        (scheduledAgo === null ? "It has not run yet." : `Last seen ${seconds(scheduledAgo)} ago.`) +
        (pausedQueues === 0 ? "" : ` An operator paused ${pausedQueues} of the queues.`),
    },
    {
      name: "Parsing",
      word: isRead ? "up to date" : "behind",
      tone: isRead ? "good" : "warn",
      text: isRead
        ? "Responses of houses are parsed within seconds."
        : `The oldest pending response is ${seconds(unreadFor)} old.`,
    },
  ];
}

function successOfDay(row: UptimeDay | undefined): string | null {
  return row === undefined ? null : success({ good: row.good, asked: row.total });
}

/** Rounds down, so that 100 % means all. */
function success({ good, asked }: Pick<PollSuccess, "good" | "asked">): string {
  if (asked === 0) return "none asked";
  const percent = Math.floor((good / asked) * 1_000) / 10;
  return `${percent.toFixed(1)} % of ${asked.toLocaleString("en-US")}`;
}

function countedBy(houses: readonly ShownHouse[]): { status: string; tone: string; n: number }[] {
  return [...Map.groupBy(houses, ({ status }) => status)].map(([status, own]) => ({
    status,
    tone: own[0]?.tone ?? "quiet",
    n: own.length,
  }));
}
