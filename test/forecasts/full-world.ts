import { crashHundredths } from "../../src/houses/fairness/bustabit.ts";
import { previousHash } from "../../src/houses/fairness/walk.ts";
import { timesFrom } from "../support/passes.ts";
import { generatedRounds } from "./streams.ts";
import { createWorld, type World, type WorldOptions } from "./world.ts";

const SALT = "salt";

/** Games of a provable house, oldest first, with numbers from `first` on. */
export function provenGames(first: number, count: number) {
  const hashes = ["ab".repeat(32)];
  while (hashes.length < count) hashes.push(previousHash(hashes.at(-1) ?? ""));
  return hashes.toReversed().map((proofHash, at) => ({
    roundId: String(first + at),
    hundredths: crashHundredths(proofHash, SALT),
    proofHash,
    verified: true as const,
  }));
}

/** The settings of a table with such games. */
export function provable(era: { from?: number; terminating_id?: number } = {}): Record<string, unknown> {
  return { fairness: { scheme: "bustabit", salt: SALT, terminating_hash: "00".repeat(32), ...era }, feed: FEED };
}

/**
 * A world with everything in it: an imported history, gaps, late rounds, responses with several rounds, proofs, scores and
 * voids, conflicts before and after a score, a day that is over, and summed accuracy.
 */
export async function fullWorld(options: WorldOptions = {}): Promise<World> {
  const world = await createWorld({
    ownDatabase: true,
    tables: [provable({ from: 2000 }), { round_ids: "opaque" }],
    ...options,
  });
  const dayAgo = timesFrom(Date.now() - 26 * 3_600_000, 20_000);
  const old = generatedRounds(80).map(({ hundredths }, at) => ({ hundredths, roundId: String(1001 + at) }));
  await world.play(old, world.tableId, { atOnce: 4, times: dayAgo });
  const games = provenGames(2000, 95);
  const missed = games.splice(13, 5);
  for (const [at, game] of games.entries()) {
    if (at === 20) await world.addLate("computed", missed.slice(1, 2));
    await world.play([game]);
    // the house lists another result: of a round that open windows look at, and of one whose forecasts are settled
    if (at === 6 || at === 25) await world.play([{ hundredths: game.hundredths + 1, roundId: game.roundId }]);
  }
  await world.play([1, 2, 3].map((n) => ({ hundredths: 160, roundId: String(2094 + n) })));
  const other = world.tableIds[1] ?? 0;
  const opaque = generatedRounds(70).map(({ hundredths }, at) => ({ hundredths, roundId: `r${at}` }));
  await world.play(opaque, other, { atOnce: 1 });
  await world.add();
  return world;
}

const FEED = { path: "/", items: "rounds", round_id: "id", multiplier: "multiplier", hash: "hash" };
