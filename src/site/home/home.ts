import type { Memory } from "../../published/memory.ts";
import type { Table } from "../../published/tables.ts";
import type { ListedPlan } from "../../callers/plan-store.ts";
import type { PublishedReadingJson } from "../../forecasts/readings/reading-state.ts";
import type { Drawn } from "../accuracy/drawings.ts";
import { ratesText } from "../../frame/text/accuracy-format.ts";
import type { SitePage } from "../send-page.ts";
import { samplesOf } from "../docs/samples.ts";
import { shownTable } from "../houses/houses.ts";
import { readingOf, recordOf as recordOfTable, shownForecast } from "../houses/table.ts";
import { cheapestOf, shownPlans } from "../plans/plans.ts";
import type { PastForecast } from "../houses/table-store.ts";
import type { ListedHouse } from "../site-store.ts";
import { shownHouse } from "./houses.ts";
import type { MeasuredRecord } from "./record.ts";

/** A short list; the API has all of them. */
const TABLES_SHOWN = 6;
const NOTICES_SHOWN = 3;
const HOUSES_SHOWN = 12;
const ROUNDS_SHOWN = 16;
/** From this age on the page marks its data as old. */
const OLD_SECONDS = 15;

/** What the home page needs; a part that could not be loaded is null. */
export interface HomeParts {
  memory: Memory;
  record: MeasuredRecord;
  site: string;
  houses: { houses: ListedHouse[]; total: number } | null;
  plans: readonly ListedPlan[] | null;
  /** The table that is shown in full; null for none. */
  featured: { table: Table; past: PastForecast | null; reading: PublishedReadingJson | null } | null;
  drawn: Drawn;
}

/** The home page: what the service is, live tables, measured accuracy, prices, and how to start. */
export function homePage({ memory, record, site, houses, plans, featured, drawn }: HomeParts): SitePage {
  const { tables } = memory.tables;
  const shown = tables.slice(0, TABLES_SHOWN);
  const noticed = tables.filter(({ continuityText }) => continuityText !== null);
  const { liveWindowMs } = memory.clock();
  const age = memory.ageSeconds();
  return {
    path: "/",
    template: "home/home",
    kind: "home",
    title: "Rounds of crash games, checked and measured",
    description:
      "An API with live rounds of crash games, checked where they can be, and forecasts whose hit rate is measured in public. Information only, 18+.",
    data: {
      samples: samplesOf(`${site}/api/v1/rounds?limit=5`, "tables"),
      liveSeconds: liveWindowMs / 1_000,
      houses: houses && {
        houses: houses.houses.slice(0, HOUSES_SHOWN).map((house) => shownHouse(house, liveWindowMs)),
        total: houses.total,
      },
      tables: shown.map((table) => ({ ...shownTable(table, memory, ROUNDS_SHOWN), name: nameOf(table).name })),
      tablesLeft: tables.length - shown.length,
      featured: featured && {
        name: nameOf(featured.table).name,
        href: `/houses/${nameOf(featured.table).name}`,
        forecast: featured.past && shownForecast(featured.past),
        record: recordOfTable(featured.table),
        reading: readingOf(featured.reading),
      },
      age: age > OLD_SECONDS ? age : null,
      notices: noticed.slice(0, NOTICES_SHOWN).map((table) => ({ ...nameOf(table), text: table.continuityText })),
      noticesLeft: Math.max(0, noticed.length - NOTICES_SHOWN),
      record,
      rates: ratesText(record.figures),
      ...drawn,
      plans: shownPlans(plans),
      cheapest: cheapestOf(plans),
    },
  };
}

/**
 * Chooses the table that the home page shows in full: the first with real rounds and a forecast, else the first with a
 * forecast.
 */
export function featuredOf({ tables: { tables } }: Pick<Memory, "tables">): Table | null {
  const published = tables.filter((table) => table.published !== null);
  return published.find(({ house }) => !house.simulated) ?? published[0] ?? null;
}

/** A table's name is always shown with a mark if its rounds are simulated. */
function nameOf({ house, game, market }: Table): { name: string; simulated: boolean } {
  return { name: `${house.id}/${game}/${market}`, simulated: house.simulated };
}
