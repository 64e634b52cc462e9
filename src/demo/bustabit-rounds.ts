import { json, type DemoResponse } from "./response.ts";
import { LAST_GAME } from "./bustabit-v2.ts";
import { readPage } from "./page.ts";
import { houseMsAt, wallMsAt, type Timeline } from "./timeline.ts";
import type { TrueGame } from "./true-chain.ts";

/** Game n ends at T0 + n s: one a second at speed 1. */
const GAME_MS = 1_000;
const PAGE = 50;

/** The number of the newest game that has ended; 0 before the first, and never more than the chain's last. */
export function newestGame(timeline: Timeline, nowMs: number): number {
  return Math.min(Math.max(Math.floor(houseMsAt(timeline, nowMs) / GAME_MS), 0), LAST_GAME);
}

/**
 * Responds to `/bustabit/rounds`: the newest games that have ended, or those before `before`, newest first, fifty or
 * `limit` of them. After the last game with a known hash, 66 days after T0, the list is marked and does not change.
 */
export async function serveBustabitRounds(
  query: URLSearchParams,
  world: {
    timeline: Timeline;
    nowMs: number;
    games: (page: { newest: number; oldest: number }) => Promise<TrueGame[]>;
  },
): Promise<DemoResponse> {
  const { timeline, nowMs, games } = world;
  const asked = readPage(query, {
    defaultLimit: PAGE,
    isId: (text) => /^[1-9]\d{0,9}$/.test(text),
    idKind: "the number of a game",
  });
  if (!asked.ok) return json({ error: asked.problem }, 400);
  const { limit, beforeId } = asked.page;
  const last = newestGame(timeline, nowMs);
  const newest = beforeId === null ? last : Math.min(last, Number(beforeId) - 1);
  const listed = await games({ newest, oldest: Math.max(1, newest - limit + 1) });
  const rounds = listed.map(({ id, hash, hundredths }) => ({
    id,
    multiplier: hundredths / 100, // the double nearest to two decimals is written with two decimals
    created_at: new Date(wallMsAt(timeline, id * GAME_MS)).toISOString(),
    hash,
  }));
  if (last < LAST_GAME) return json({ rounds });
  const note = `game ${LAST_GAME} is the last one whose hash is known; no more follow until demo-house.json is deleted`;
  return json({ rounds, chain_ended: true, note });
}
