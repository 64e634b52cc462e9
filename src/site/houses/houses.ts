import type { Memory } from "../../published/memory.ts";
import type { Table } from "../../published/tables.ts";
import type { SitePage } from "../send-page.ts";
import { delayedRounds } from "../delayed.ts";
import { shownHouse, STATUS_TONES } from "../home/houses.ts";
import type { Incident, ListedHouse, UptimeDay } from "../site-store.ts";
import { shownUptime, UPTIME_DAYS } from "../uptime.ts";

const ROUNDS_SHOWN = 24;
/** A house may have thousands of tables; a page stays short. */
const TABLES_SHOWN = 30;
const HOUSES_SHOWN = 60;

/** The list of all houses; null if they could not be loaded. */
export function housesPage(
  houses: { houses: ListedHouse[]; total: number } | null,
  { memory }: { memory: Memory },
): SitePage {
  const { liveWindowMs } = memory.clock();
  return {
    path: "/houses",
    template: "houses/list",
    title: "Houses",
    description: "The houses whose crash-game rounds Roundhouse collects: whether they are live, and their tables.",
    header: {
      lead: "Every house that is polled, and whether its rounds arrive. Each has a page, and so has each of its tables.",
    },
    data: {
      liveSeconds: liveWindowMs / 1_000,
      houses: houses && {
        total: houses.total,
        houses: houses.houses.slice(0, HOUSES_SHOWN).map((house) => ({
          ...shownHouse(house, liveWindowMs),
          links: (memory.tables.byHouse.get(house.id) ?? []).slice(0, 6).map(linkOf),
        })),
      },
    },
  };
}

/** What the page of a house needs; a part that could not be loaded is null. */
export interface HouseParts {
  memory: Memory;
  house: ListedHouse;
  uptime: readonly UptimeDay[] | null;
  incidents: readonly Incident[] | null;
}

/** The page of a house: status, availability, tables with their rounds, and notices. */
export function housePage({ memory, house, uptime, incidents }: HouseParts): SitePage {
  const { liveWindowMs } = memory.clock();
  const tables = memory.tables.byHouse.get(house.id) ?? [];
  const shown = shownHouse(house, liveWindowMs);
  return {
    path: `/houses/${house.id}`,
    template: "houses/house",
    title: house.name,
    description: `Live state, availability over ${UPTIME_DAYS} days, rounds and notices of ${house.name} at Roundhouse.`,
    crumbs: [{ label: "Houses", href: "/houses" }],
    header: { badges: badgesOf(shown) },
    data: {
      house: shown,
      uptime: uptime && shownUptime(uptime, new Date()),
      incidents,
      tables: tables.slice(0, TABLES_SHOWN).map((table) => shownTable(table, memory, ROUNDS_SHOWN)),
      tablesLeft: Math.max(0, tables.length - TABLES_SHOWN),
    },
  };
}

/** A table as lists show it: link, status and delayed rounds. */
export function shownTable(table: Table, memory: Memory, most: number) {
  const status = memory.statusOf(table);
  return {
    ...linkOf(table),
    house: table.house.id,
    simulated: table.house.simulated,
    status,
    tone: STATUS_TONES[status],
    lastRoundAt: table.lastRoundAt,
    rounds: delayedRounds(table, memory, most),
  };
}

/** The badges next to the name of a house. */
function badgesOf({ status, tone, simulated, demo }: ReturnType<typeof shownHouse>) {
  const kind = simulated ? "simulated" : demo ? "demo" : null;
  return [{ text: status, tone }, ...(kind === null ? [] : [{ text: kind, tone: "info" as const }])];
}

function linkOf({ house, game, market }: Table): { name: string; href: string } {
  return { name: `${game}/${market}`, href: `/houses/${house.id}/${game}/${market}` };
}
