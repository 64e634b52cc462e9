import { z } from "zod";
import { createProver } from "../src/houses/fairness/prove.ts";
import { loadHouse } from "../src/houses/store.ts";
import { job } from "../src/queue/job.ts";
import { normalizeBatch } from "../src/rounds/normalize.ts";
import { syncProofAlerts } from "../src/rounds/proof-alerts-store.ts";
import { listHousesToNormalize } from "../src/rounds/payload-store.ts";
import backfillGap from "./backfill-gap.ts";
import issueForecasts from "./issue-forecasts.ts";
import scoreAccuracy from "./score-accuracy.ts";

/** Remembers which hashes lead nowhere, for as long as this process lives. */
const prover = createProver();

/**
 * Read what a house answered: rounds get their place, everything else is kept apart with its reason.
 *
 * Each feed's answers are read in the order in which they were asked for, and none stays unread: what cannot be read is
 * refused with the reason, kept, and can be read again.
 */
export default job({
  name: "normalize-rounds",
  payload: z.object({ house: z.string() }),
  key: ({ house }) => house,
  schedule: null,
  sweep: ({ sql }) => listHousesToNormalize(sql),
  concurrency: 50, // houses that come at the same time share a transaction; each holds answers in memory
  timeoutMs: 60_000, // the first walk to the end of a chain of ten million rounds takes five seconds
  retry: { attempts: 5, firstMs: 500, maxMs: 30_000 },

  async run({ house: id }, { sql, variables, log, signal, follow, enqueue, published }) {
    const counts = { payloads: 0, refused: 0, rounds: 0, late: 0, quarantined: 0, conflicts: 0, gaps: 0 };
    const house = await loadHouse(sql, variables, id);
    if (house === null) return counts;
    for (;;) {
      signal.throwIfAborted();
      const batch = await normalizeBatch(sql, house, prover, signal);
      if (batch === null) break;
      follow(batch.payloadIds);
      if (batch.published > 0) published();
      if (batch.proofFailed) await syncProofAlerts(sql, log);
      for (const gap of batch.gaps) await enqueue(backfillGap, { gap: String(gap) });
      counts.payloads += batch.payloads;
      counts.refused += batch.refused;
      counts.rounds += batch.rounds;
      counts.late += batch.late;
      counts.quarantined += batch.quarantined;
      counts.conflicts += batch.conflicts;
      counts.gaps += batch.gaps.length;
    }
    // also where no round was new: a forecast that was refused for this very answer may be issued now that it is read
    if (counts.payloads > 0) await enqueue(issueForecasts, { house: id });
    if (counts.rounds > 0 || counts.conflicts > 0) await enqueue(scoreAccuracy, { house: id });
    return counts;
  },
});
