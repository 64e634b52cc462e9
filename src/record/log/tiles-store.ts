import { LRUCache } from "lru-cache";
import type { Queryable, Transaction } from "../../db/client.ts";
import type { ReadTile, Tile } from "./tree.ts";

/** Stores tiles that are new or longer. */
export async function saveTiles(tx: Transaction, logId: number, tiles: readonly Tile[]): Promise<void> {
  await tx`
    insert into log_tiles (log_id, level, n, hashes)
    select ${logId}, level, n, decode(hashes, 'hex')
    from unnest(
      ${tiles.map(({ level }) => level)}::smallint[],
      ${tiles.map(({ n }) => n)}::bigint[],
      ${tiles.map(({ hashes }) => hashes.toString("hex"))}::text[]
    ) as t (level, n, hashes)
    on conflict (log_id, level, n) do update
    set hashes = excluded.hashes`;
}

/** The last tile of each level that has any. */
export async function listEdge(sql: Queryable, logId: number): Promise<Tile[]> {
  return sql<Tile[]>`
    with recursive edge as (
      select 0 as level, newest.n, newest.hashes
      from (select n, hashes from log_tiles where log_id = ${logId} and level = 0 order by n desc limit 1) newest
      union all
      select edge.level + 1, above.n, above.hashes
      from edge
      cross join lateral (
        select n, hashes
        from log_tiles
        where log_id = ${logId}
          and level = edge.level + 1
        order by n desc
        limit 1
      ) above
    )
    select level, n::float8 as n, hashes
    from edge`;
}

/** A tile's hashes so far; null if there is none. */
export async function findTile(sql: Queryable, logId: number, level: number, n: number): Promise<Buffer | null> {
  const [tile] = await sql<{ hashes: Buffer }[]>`
    select hashes
    from log_tiles
    where log_id = ${logId}
      and level = ${level}
      and n = ${n}`;
  return tile?.hashes ?? null;
}

/** 8 MB of full tiles; a path from the root of a log to an entry has at most seven. */
const TILES_KEPT = 1_000;

/** Reads the tiles of a log and keeps those read last. */
export function tileReader(sql: Queryable, logId: number): ReadTile {
  const tiles = new LRUCache<string, Promise<Buffer | null>>({ max: TILES_KEPT });
  return async (level, n) => {
    const key = `${level}/${n}`;
    const reading = tiles.get(key) ?? findTile(sql, logId, level, n);
    tiles.set(key, reading);
    const hashes = await reading;
    if (hashes === null) throw new Error(`expected tile ${key} of log ${logId}, found none: run \`roundhouse verify\``);
    return hashes;
  };
}
