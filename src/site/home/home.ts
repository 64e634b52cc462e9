import { z } from "zod";
import { roundsAfter } from "../../published/held-rounds.ts";
import type { Memory } from "../../published/memory.ts";
import type { Table } from "../../published/tables.ts";
import type { ListedPlan } from "../../callers/plan-store.ts";
import { between, share } from "../../frame/measured.ts";
import type { SitePage } from "../answer.ts";
import { cheapestOf, shownPlans } from "../plans/plans.ts";
import type { ListedHouse } from "../site-store.ts";
import { shownHouse, STATUS_TONES } from "./houses.ts";
import type { MeasuredRecord } from "./record.ts";

/** A first page stays short; the API has all of them. */
const TABLES_SHOWN = 24;
const NOTICES_SHOWN = 12;
const HOUSES_SHOWN = 40;
const ROUNDS_SHOWN = 8;
/** From here on the page says that what it shows is old. */
const OLD_SECONDS = 15;

/** Live rounds are for callers: this page has none of the newest of a table, and none that was received within a minute. */
const ROUNDS_WITHHELD = 3;
const WITHHELD_MS = 60_000;

const shownRound = z.object({ multiplier: z.number(), color: z.string(), received_at: z.string() });

/** What the first page is made of; what could not be loaded is null. */
export interface HomeParts {
  memory: Memory;
  record: MeasuredRecord;
  site: string;
  houses: { houses: ListedHouse[]; total: number } | null;
  plans: readonly ListedPlan[] | null;
}

/** The first page: what this is and is not, what runs here now, how accurate it has been, and how to begin. */
export function homePage({ memory, record, site, houses, plans }: HomeParts): SitePage {
  const { tables } = memory.tables;
  const shown = tables.slice(0, TABLES_SHOWN);
  const noticed = tables.filter(({ continuityText }) => continuityText !== null);
  const { liveWindowMs } = memory.clock();
  const age = memory.ageSeconds();
  return {
    path: "/",
    template: "home/home",
    title: "Rounds of crash games, checked and measured",
    description:
      "An API with live rounds of crash games, checked where they can be, and forecasts whose hit rate is measured in public. Information only, 18+.",
    data: {
      site,
      liveSeconds: liveWindowMs / 1_000,
      houses: houses && {
        houses: houses.houses.slice(0, HOUSES_SHOWN).map((house) => shownHouse(house, liveWindowMs)),
        total: houses.total,
      },
      tables: shown.map((table) => shownTable(table, memory)),
      tablesLeft: tables.length - shown.length,
      age: age > OLD_SECONDS ? age : null,
      notices: noticed.slice(0, NOTICES_SHOWN).map((table) => ({ ...nameOf(table), text: table.continuityText })),
      noticesLeft: Math.max(0, noticed.length - NOTICES_SHOWN),
      record,
      plans: shownPlans(plans),
      cheapest: cheapestOf(plans),
      share,
      between,
    },
  };
}

function shownTable(table: Table, memory: Memory) {
  const status = memory.statusOf(table);
  const withheldAfterMs = memory.clock().nowMs - WITHHELD_MS;
  const rounds = roundsAfter(table.rounds, ROUNDS_WITHHELD)
    .map((json) => shownRound.parse(JSON.parse(json)))
    .filter(({ received_at }) => Date.parse(received_at) <= withheldAfterMs)
    .take(ROUNDS_SHOWN)
    .map(({ multiplier, color }) => ({ multiplier: multiplier.toFixed(2), color }))
    .toArray();
  return { ...nameOf(table), status, tone: STATUS_TONES[status], rounds, lastRoundAt: table.lastRoundAt };
}

/** Wherever a table is named, it says so if its rounds are invented. */
function nameOf({ house, game, market }: Table): { name: string; simulated: boolean } {
  return { name: `${house.id}/${game}/${market}`, simulated: house.simulated };
}
