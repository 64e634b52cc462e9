import { crashHundredths } from "../../src/houses/fairness/bustabit.ts";
import { previousHash } from "../../src/houses/fairness/walk.ts";
import { timesFrom } from "../support/passes.ts";
import { generatedRounds } from "./streams.ts";
import { createWorld, type World, type WorldOptions } from "./world.ts";

const SALT = "salt";

/** Games of a provable house, oldest first. */
function provenGames(count: number): { hundredths: number; proofHash: string; verified: true }[] {
  const hashes = ["ab".repeat(32)];
  while (hashes.length < count) hashes.unshift(previousHash(hashes[0] ?? ""));
  return hashes.map((proofHash) => ({ proofHash, verified: true, hundredths: crashHundredths(proofHash, SALT) }));
}

/**
 * A world with everything in it: an imported history, gaps, late rounds, responses with several rounds, proofs, scores and
 * voids, conflicts before and after a score, a day that is over, and summed accuracy.
 */
export async function fullWorld(options: WorldOptions = {}): Promise<World> {
  const world = await createWorld({
    ownDatabase: true,
    tables: [
      { fairness: { scheme: "bustabit", salt: SALT, terminating_hash: "00".repeat(32) }, feed: FEED },
      { round_ids: "opaque" },
    ],
    ...options,
  });
  const dayAgo = timesFrom(Date.now() - 26 * 3_600_000, 20_000);
  const old = generatedRounds(80).map(({ hundredths }, at) => ({ hundredths, roundId: String(1001 + at) }));
  await world.play(old, world.tableId, { atOnce: 4, times: dayAgo });
  const games = provenGames(90).map((game, at) => ({ ...game, roundId: String(2000 + at + (at > 12 ? 5 : 0)) }));
  for (const [at, game] of games.entries()) {
    if (at === 20) await world.addLate("computed", [{ hundredths: 150, roundId: "2014" }]);
    await world.play([game]);
    // the house lists another result: of a round that open windows look at, and of one whose forecasts are settled
    if (at === 6 || at === 25) await world.play([{ hundredths: game.hundredths + 1, roundId: game.roundId }]);
  }
  await world.play([1, 2, 3].map((n) => ({ hundredths: 160, roundId: String(2094 + n) })));
  const other = world.tableIds[1] ?? 0;
  for (const [at, { hundredths }] of generatedRounds(70).entries()) {
    await world.play([{ hundredths, roundId: `r${at}` }], other);
  }
  await world.add();
  return world;
}

const FEED = { path: "/", items: "rounds", round_id: "id", multiplier: "multiplier", hash: "hash" };
