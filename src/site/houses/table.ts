import { wilsonInterval } from "../../forecasts/accuracy/figures/intervals.ts";
import type { ReadingState } from "../../forecasts/readings/reading-state.ts";
import { readingText, showFacts } from "../../forecasts/readings/reading-text.ts";
import { type SurvivalPoint, survivalPlot } from "../../charts/survival.ts";
import { decimalsOf, ratesText, share } from "../../frame/text/accuracy-format.ts";
import type { Drawn } from "../accuracy/drawings.ts";
import type { Memory } from "../../published/memory.ts";
import type { Table } from "../../published/tables.ts";
import type { ToDraw } from "../accuracy/plots.ts";
import { measureTable } from "../accuracy/lines.ts";
import type { SitePage } from "../send-page.ts";
import type { PublishedReadingJson } from "../../forecasts/readings/reading-state.ts";
import { skillSentence } from "../accuracy/skill.ts";
import type { Incident } from "../site-store.ts";
import type { PastForecast, TableFacts } from "./table-store.ts";
import { shownTable } from "./houses.ts";

const ROUNDS_SHOWN = 60;
/** Multipliers of the plot, in hundredths. */
export const THRESHOLDS = [110, 150, 200, 300, 500, 1_000, 2_000, 5_000, 10_000] as const;
/** Rounds in the distribution. */
export const ROUNDS_COUNTED = 10_000;

/** How the results of a scheme follow from its hashes, in one sentence. */
const CHAINED =
  "The house played a chain of hashes backwards: the hash of each round is the SHA-256 of the next one's, so no result could be chosen after the chain was made public.";

/** What the page of a table needs; a part that could not be loaded is null. */
export interface TableParts {
  memory: Memory;
  table: Table;
  facts: TableFacts | null;
  past: PastForecast | null;
  reading: PublishedReadingJson | null;
  incidents: readonly Incident[] | null;
  drawn: Drawn;
}

/**
 * The page of a table: status, rounds, a past forecast, its record, the distribution of multipliers, proofs, notices.
 */
export function tablePage({ memory, table, facts, past, reading, incidents, drawn }: TableParts): SitePage {
  const { house, game, market } = table;
  const name = `${house.id}/${game}/${market}`;
  const shown = shownTable(table, memory, ROUNDS_SHOWN);
  return {
    path: `/houses/${name}`,
    template: "houses/table",
    title: `${game}/${market}`,
    description: `Rounds, forecasts, measured accuracy and the distribution of multipliers of ${name} at Roundhouse.`,
    crumbs: [
      { label: "Houses", href: "/houses" },
      { label: house.id, href: `/houses/${house.id}` },
    ],
    header: {
      badges: [
        { text: shown.status, tone: shown.tone },
        ...(house.simulated ? [{ text: "simulated", tone: "info" as const }] : []),
      ],
      more: [{ label: "Accuracy", href: `/accuracy?of=${encodeURIComponent(name)}` }],
    },
    data: {
      name,
      table: shown,
      notice: table.continuityText,
      record: recordOf(table),
      forecast: past && shownForecast(past),
      reading: readingOf(reading),
      facts,
      proof: facts && proofOf(facts),
      incidents,
      ...drawn,
    },
  };
}

/** Describes the scores of a table's next color over 30 days. */
export function recordOf(table: Table) {
  const measured = measureTable(table, { feature: "next_color", period: "30d" });
  if (measured === null || measured.figures.sample_size === 0) return null;
  const { figures } = measured;
  return { n: figures.sample_size, ...ratesText(figures), sentence: skillSentence(figures) };
}

/** A past forecast as bars with the long-run shares, and its outcome. */
export function shownForecast({ issuedAt, afterRoundId, reason, ...past }: PastForecast) {
  const { colors, pPpm, basePpm, outcome, multiplier } = past;
  return {
    issuedAt,
    afterRoundId,
    odds: colors.map((color, at) => ({ color, p: (pPpm[at] ?? 0) / 1e6, baseline: (basePpm[at] ?? 0) / 1e6 })),
    came: outcome === null || multiplier === null ? null : { multiplier, color: colors[outcome] ?? "other" },
    reason,
  };
}

/** A reading in words; null if there is none to show. */
export function readingOf(reading: PublishedReadingJson | null): { text: string; madeAt: string } | null {
  if (reading === null) return null;
  const state: ReadingState = "speaking";
  return {
    text: readingText({ state, facts: showFacts(reading.facts), rounds: reading.rounds }, "en"),
    madeAt: reading.made_at,
  };
}

/** Plots how many rounds reached each multiplier, with the numbers. */
export function distributionOf(facts: TableFacts): ToDraw | null {
  if (facts.rounds === 0) return null;
  const points: SurvivalPoint[] = THRESHOLDS.map((hundredths, at) => ({
    threshold: hundredths / 100,
    share: (facts.atLeast[at] ?? 0) / facts.rounds,
    declared: facts.edge === null ? null : (1 - facts.edge) / (hundredths / 100),
  }));
  return {
    plot: survivalPlot("Multipliers against the declared edge", points),
    columns: ["Multiplier", "Rounds at or above", "Observed", "Declared"],
    rows: points.map(({ threshold, share: observed, declared }, at) => {
      const reached = facts.atLeast[at] ?? 0;
      const count = decimalsOf(wilsonInterval(reached, facts.rounds));
      return [
        `${threshold.toFixed(2)}×`,
        reached.toLocaleString("en-US"),
        share(observed, count),
        share(declared, count),
      ];
    }),
  };
}

function proofOf({ scheme, rounds, verified, failed }: TableFacts) {
  if (scheme === null) return null;
  return { scheme, text: CHAINED, rounds, verified, failed };
}
