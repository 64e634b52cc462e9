import { z } from "zod";
import type { StoredTable } from "../stores/load-store.ts";
import { replay } from "./replay.ts";
import { PASS_NOTICES, type PassState, type StoredState } from "./state.ts";

const settings = z.object({ house_edge: z.number().optional() });

/**
 * The state of a table from its stored rows, and from an older cached state if there is one.
 *
 * @throws Error if the stored rows contradict each other, see {@link replay}
 */
export function stateOf(stored: StoredTable, from?: PassState): PassState {
  return replay(storedState(stored), from);
}

function storedState(stored: StoredTable): StoredState {
  const { tableId, house, game, market, roundIds, bands } = stored;
  return {
    table: {
      tableId,
      name: `${house}/${game}/${market}`,
      roundIds,
      bands,
      edge: settings.parse(stored.settings).house_edge ?? null,
      resets: stored.resets,
    },
    version: stored.version,
    head: stored.head,
    snapshot: stored.snapshot,
    rounds: stored.replay,
    sets: stored.sets.map((set) => {
      const other = stored.otherBands.get(set.cutoffSeq);
      return other === undefined ? set : { ...set, bands: other };
    }),
    settled: stored.settled,
    known: stored.known,
    heldBack: stored.heldBack,
    isHeldCut: stored.isHeldCut,
    unknownGaps: stored.unknownGaps,
    notices: new Map([...stored.notices].filter(([kind]) => PASS_NOTICES.includes(kind))),
    format: stored.format,
    hasUnread: stored.hasUnread,
    reading: stored.reading,
  };
}
