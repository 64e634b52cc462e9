import { crashHundredths } from "../../src/houses/fairness/bustabit.ts";
import { previousHash } from "../../src/houses/fairness/walk.ts";
import { generatedRounds } from "./streams.ts";
import { createWorld, saveConflict, type World, type WorldOptions } from "./world.ts";

const SALT = "salt";

/** Games of a provable house, oldest first. */
function provenGames(count: number): { hundredths: number; proofHash: string }[] {
  const hashes = ["ab".repeat(32)];
  while (hashes.length < count) hashes.unshift(previousHash(hashes[0] ?? ""));
  return hashes.map((proofHash) => ({ proofHash, hundredths: crashHundredths(proofHash, SALT) }));
}

/**
 * A world with everything in it: an imported history, gaps, late rounds, answers with several rounds, proofs, every
 * kind of score, a conflict before and one after its score, hours that are over and final, one that was revised, and
 * published periods.
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
  const games = provenGames(30);
  await world.play(generatedRounds(20).map(({ hundredths }) => ({ hundredths, source: "import" })));
  for (const [index, game] of games.entries()) {
    const roundId = String(2000 + index + (index > 12 ? 5 : 0));
    if (index === 20) {
      await world.play([{ hundredths: 150, roundId: "2014", source: "computed", late: true }]);
      await world.moveBack(26);
    }
    await world.play([index === 9 ? { ...game, roundId, requestedAgo: 60, absentAgo: 61 } : { ...game, roundId }]);
    if (index === 6) await saveConflict(world.sql, world.tableId, roundId);
    if (index % 4 !== 3) await world.score();
    await world.issue();
    if (index === 25) await saveConflict(world.sql, world.tableId, "2027");
  }
  await world.play([1, 2, 3].map((n) => ({ hundredths: 160, roundId: String(2034 + n) })));
  await world.issue();
  const other = world.tableIds[1] ?? 0;
  for (const [index, { hundredths, afterGap }] of generatedRounds(12).entries()) {
    await world.play([{ hundredths, afterGap, roundId: `r${index}` }], other);
    await world.issue();
  }
  await saveConflict(world.sql, world.tableId, "2003");
  await world.score();
  await world.publish();
  return world;
}

const FEED = { path: "/", items: "rounds", round_id: "id", multiplier: "multiplier", hash: "hash" };
