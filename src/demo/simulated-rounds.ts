import { json, type DemoResponse } from "./response.ts";
import { readPage } from "./page.ts";
import type { ListedRound, SimulatedFeed } from "./simulated-feed.ts";
import { SIMULATED_GAMES, type SimulatedGame } from "./simulated-games.ts";
import { houseMsAt, speedAt, wallMsAt, type Timeline } from "./timeline.ts";

/** Ten minutes had been played at T0, so that the first page is full. */
const PAST_AT_T0_MS = 600_000;

/** How a game writes its rounds: real houses differ, and so do these. */
interface Format {
  defaultLimit: number;
  write: (rounds: (ListedRound & { endedAt: Date })[]) => Record<string, unknown>;
}

const FORMATS: Readonly<Record<string, Format>> = {
  /** Newest first, multipliers as text with a comma. */
  rocket: {
    defaultLimit: 30,
    write: (rounds) => ({
      rounds: rounds.map((round) => ({
        id: round.id,
        result: value(round, ["∞x", "0,42x", "-1,20x", "?"], (hundredths) =>
          hundredths === 100 ? "0" : `${(hundredths / 100).toFixed(2).replace(".", ",")}x`,
        ),
        ended_at: round.endedAt.toISOString(),
      })),
    }),
  },
  /** Newest first, deeper inside, integer hundredths, times in milliseconds since 1970. */
  comet: {
    defaultLimit: 40,
    write: (rounds) => ({
      data: {
        games: rounds.map((round) => ({
          game_id: round.id,
          crash: value(round, [42, -187, "∞", null], (hundredths) => (hundredths === 100 ? 0 : hundredths)),
          ended: round.endedAt.getTime(),
        })),
      },
    }),
  },
  /** Newest last, plain numbers. */
  balloon: {
    defaultLimit: 50,
    write: (rounds) => ({
      items: rounds.toReversed().map((round) => ({
        round: round.id,
        multiplier: value(round, [0.42, -3, "NaN", null], (hundredths) => (hundredths === 100 ? 0 : hundredths / 100)),
        time: round.endedAt.toISOString(),
      })),
    }),
  },
};

/** The simulated games by the path of their rounds. */
export const SIMULATED_PATHS: ReadonlyMap<string, SimulatedGame> = new Map(
  SIMULATED_GAMES.map((game) => [`/simulated/${game.game}/rounds`, game]),
);

/** Serves `/simulated/{game}/rounds`; every response, errors included, has `"simulated": true`. */
export function serveSimulatedRounds(
  game: SimulatedGame,
  query: URLSearchParams,
  world: { timeline: Timeline; nowMs: number; feed: SimulatedFeed },
): DemoResponse {
  const { timeline, feed } = world;
  const nowMs = houseMsAt(timeline, world.nowMs) + PAST_AT_T0_MS;
  const busyForMs = feed.busyForMs(game, nowMs);
  if (busyForMs !== null) {
    const seconds = Math.ceil(busyForMs / speedAt(timeline, world.nowMs) / 1000);
    const error = `busy on purpose, to show what happens then; ask again in ${seconds} s`;
    return json({ simulated: true, error }, 503, { "retry-after": String(seconds) });
  }
  const format = FORMATS[game.game];
  if (format === undefined) throw new Error(`the simulated game ${game.game} has no format`);
  const asked = readPage(query, {
    defaultLimit: format.defaultLimit,
    isId: (text) => /^[a-z0-9]{1,64}$/.test(text),
    idKind: "the id of a round",
  });
  if (!asked.ok) return json({ simulated: true, error: asked.problem }, 400);
  const listed = feed.list(game, nowMs, asked.page);
  if (listed === null) {
    return json({ simulated: true, error: `no round ${asked.page.beforeId} was ever listed here` }, 404);
  }
  const rounds = listed.map((round) => ({
    ...round,
    endedAt: new Date(wallMsAt(timeline, round.endMs - PAST_AT_T0_MS)),
  }));
  return json({ simulated: true, ...format.write(rounds) });
}

/** A round's value as its game writes it: one of the game's four impossible ones where the round is to have one. */
function value<T, U>(round: ListedRound, impossible: readonly T[], write: (hundredths: number) => U): T | U {
  const wrong = round.impossible === null ? undefined : impossible[round.impossible];
  return wrong === undefined ? write(round.hundredths) : wrong;
}
