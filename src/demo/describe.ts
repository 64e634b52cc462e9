import type { DemoResponse } from "./response.ts";
import { LAST_GAME } from "./bustabit-v2.ts";
import { SIMULATED_GAMES } from "./simulated-games.ts";

/** The response of `/`: what is served here, in plain words. */
export function describeDemoHouse(state: { speed: number; newestGame: number; seed: number }): DemoResponse {
  const { speed, newestGame, seed } = state;
  const seconds = (ms: number): string => `${Number((ms / 1000 / speed).toFixed(3))} s`;
  const games = SIMULATED_GAMES.map(
    ({ game, edge, pauseMs }) =>
      `  /simulated/${game}/rounds   edge ${edge}, at least ${seconds(pauseMs)} between two rounds`,
  );
  const body = `Two demo houses for Roundhouse. No one can bet here.

bustabit: true past rounds
  /bustabit/rounds?limit=50
  /bustabit/rounds?before={id}&limit={limit}
  Games of bustabit's second hash chain, as they were really played from 2018 to 2022, played again: one every
  ${seconds(1000)}, newest first, each with its hash. The results follow from the hashes and these from the published
  commitment, so every round can be proven. The newest game now is ${newestGame} of ${LAST_GAME}.

simulated: invented rounds (seed ${seed})
${games.join("\n")}
  Every response has "simulated": true. Results are random with the stated edge. Ids have no order,
  older rounds come with ?before={id}&limit={limit}. Once every four minutes each of these goes wrong in one of the
  games, on purpose: a stretch of rounds is never listed and the list starts again, a feed responds 503 with Retry-After,
  a round is listed after newer ones, a round's result changes after it was published, a value is impossible.
`;
  return { status: 200, contentType: "text/plain; charset=utf-8", body };
}
