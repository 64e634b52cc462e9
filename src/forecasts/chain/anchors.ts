/**
 * Anchors: one root over all forecasts of a UTC hour, of every table.
 *
 * A table's chain shows that nothing in it changed; a root that others have kept shows that the whole hour was there
 * when they kept it. The leaves are the 32 bytes of the forecasts' hashes, ordered by `house/game/market` as text (byte
 * by byte), then by seq: both stand in every export, so anyone can put them in order.
 */
import type { Queryable, Sql } from "../../db/client.ts";
import {
  findForecastToProve,
  listHoursToAnchor,
  readForecastsOfHour,
  saveAnchor,
  type AnchoredForecast,
} from "./anchors-store.ts";
import { parseForecastId } from "./forecast-id.ts";
import { growTree, verifyInclusion, type GrownTree } from "./merkle.ts";

/** That a forecast was among those of its hour, for anyone who has kept the hour's root. */
export interface ForecastProof {
  forecast_id: string;
  hash: string;
  hour: string;
  /** Its place among the forecasts of the hour, from 0. */
  index: number;
  size: number;
  /** Sibling hashes from the leaf up. */
  proof: string[];
  root: string;
}

/** The tree of an hour, or why there can be none. */
export type HourTree = ({ ok: true } & GrownTree) | { ok: false; reason: string };

/** Hours anchored in one run; a year in which nothing ran is caught up with in nine. */
const HOURS_PER_RUN = 1000;

/**
 * Makes the missing roots of hours that are closed, oldest first, and gives their number.
 *
 * Twice is once, also at the same time in two places: a closed hour has one root whoever makes it. An hour that cannot
 * be anchored does not keep the others from it.
 *
 * @throws Error where the forecasts of an hour are damaged, after all other hours were anchored
 */
export async function anchorHours(sql: Sql, signal: AbortSignal): Promise<number> {
  const damages: string[] = [];
  let made = 0;
  for (const hour of await listHoursToAnchor(sql, { limit: HOURS_PER_RUN })) {
    signal.throwIfAborted();
    const tree = await treeOfHour(sql, hour);
    if (!tree.ok) damages.push(tree.reason);
    else if (await saveAnchor(sql, { hour, root: tree.root, size: tree.size })) made += 1;
  }
  if (damages.length > 0) throw new Error(damages.join("; "));
  return made;
}

/**
 * The tree over the forecasts of an hour, with the proof of one of them where it is asked for. Not ok where a hash is
 * none or a forecast stands twice: somebody changed the rows by hand.
 */
export async function treeOfHour(
  sql: Queryable,
  hour: string,
  proved?: Pick<AnchoredForecast, "table" | "seq">,
): Promise<HourTree> {
  const tree = growTree();
  let before: AnchoredForecast | null = null;
  for await (const forecasts of readForecastsOfHour(sql, hour)) {
    for (const forecast of forecasts) {
      const damage = damageOf(forecast, before);
      if (damage !== null) return { ok: false, reason: `the hour ${hour} is damaged: ${damage}` };
      tree.add(leafOf(forecast), { prove: forecast.seq === proved?.seq && forecast.table === proved.table });
      before = forecast;
    }
  }
  return { ok: true, ...tree.finish() };
}

/**
 * Proves that a forecast is among those of its hour, and checks the proof against the kept root before giving it out.
 *
 * @throws Error where there is no such forecast, its hour has no root yet, or the forecasts of the hour are not those
 *   that its root was made of
 */
export async function proveForecast(sql: Sql, forecastId: string): Promise<ForecastProof> {
  const place = parseForecastId(forecastId);
  const forecast = place === null ? null : await findForecastToProve(sql, place);
  if (forecast === null)
    throw new Error(`there is no forecast ${JSON.stringify(forecastId)}; ids stand in every export, such as f12-345`);
  const { hour, closesAt, isClosed, anchor, hash } = forecast;
  if (anchor === null)
    throw new Error(
      isClosed
        ? `the hour ${hour} of forecast ${forecastId} is over and has no root yet; a worker makes it within a minute`
        : `the hour ${hour} of forecast ${forecastId} is not closed yet; ask again after ${closesAt}`,
    );
  const tree = await treeOfHour(sql, hour, forecast);
  if (!tree.ok) throw new Error(`${tree.reason}; run \`roundhouse verify\``);
  const { root, size, proved } = tree;
  const isKeptOne = root === anchor.root && size === anchor.size;
  if (!isKeptOne || proved === null || !verifyInclusion({ leaf: leafOf(forecast), size, ...proved }, anchor.root))
    throw new Error(
      `the ${size} forecasts of ${hour} have the root ${root}, and the one that was kept is ${anchor.root} over ` +
        `${anchor.size}; run \`roundhouse verify\` to see what changed`,
    );
  return { forecast_id: forecastId, hash, hour, index: proved.index, size, proof: proved.proof, root };
}

function leafOf({ hash }: AnchoredForecast): Buffer {
  return Buffer.from(hash, "hex");
}

function damageOf(forecast: AnchoredForecast, before: AnchoredForecast | null): string | null {
  const { table, seq, hash } = forecast;
  if (!/^[0-9a-f]{64}$/.test(hash))
    return `expected 64 lower case hexadecimal digits as the hash of forecast ${seq} of ${table}, got ${JSON.stringify(hash)}`;
  if (before !== null && !isInOrder(before, forecast))
    return `expected each forecast once and in order, got ${seq} of ${table} after ${before.seq} of ${before.table}`;
  return null;
}

function isInOrder(one: AnchoredForecast, next: AnchoredForecast): boolean {
  return one.table === next.table ? one.seq < next.seq : one.table < next.table;
}
