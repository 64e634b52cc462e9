import { z } from "zod";
import { LANGUAGES, sentencesOf, type Language } from "../forecasts/readings/reading-languages.ts";
import { readingText, showFacts } from "../forecasts/readings/reading-text.ts";
import { readingState, type ReadingState } from "../forecasts/readings/reading-state.ts";
import { keepFragments, listContent } from "./fragments.ts";
import { operation } from "./operation.ts";
import { filters } from "./params.ts";
import { selectTables } from "./select.ts";
import type { Table } from "../published/tables.ts";

/** The current behavior of each table, in words and as the facts that the words are made from. */
export const readings = operation({
  path: "/api/v1/readings",
  params: z.strictObject({
    ...filters,
    lang: z
      .enum(LANGUAGES, { error: `expected one of ${LANGUAGES.join(", ")}` })
      .default("en")
      .meta({ description: "The language of the text.", examples: ["en"] }),
  }),
  compose(chosen, { memory, plan }) {
    const { lang } = chosen;
    const { nowMs, liveWindowMs } = memory.clock();
    const fragments = selectTables(memory.tables, plan, chosen).map((table) =>
      READING_OF[lang](table, readingState({ ...table, paused: table.house.paused }, nowMs, liveWindowMs)),
    );
    return listContent(plan.name, "readings", fragments, { notice: sentencesOf(lang).notice });
  },
});

/** One cache per language: callers of different languages must not evict each other's entries. */
const READING_OF = { en: keep("en"), es: keep("es"), pt: keep("pt") };

function keep(lang: Language) {
  return keepFragments(
    ({ house, game, market, reading, generatedAt }: Table, state: ReadingState) => {
      const facts = state === "speaking" && reading !== null ? showFacts(reading.facts) : [];
      const rounds = reading?.rounds ?? 0;
      return JSON.stringify({
        house: house.id,
        game,
        market,
        generated_at: reading?.made_at ?? generatedAt,
        lang,
        text: readingText({ state, facts, rounds }, lang),
        facts,
        based_on_rounds: rounds,
      });
    },
    (state) => state,
  );
}
