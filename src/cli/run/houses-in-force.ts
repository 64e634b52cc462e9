import { setTimeout as delay } from "node:timers/promises";
import pLimit from "p-limit";
import type { Sql } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import { applyHouses } from "../../houses-file/apply-store.ts";
import type { HouseEntry } from "../../houses-file/load.ts";
import type { Log } from "../../log.ts";
import type { DemoServer } from "./demo-server.ts";
import type { Life } from "./life.ts";

/** Tables that are named in a warning; a file may have thousands. */
const TABLES_NAMED = 10;

/** Between attempts to apply the houses file, so that the house of a locked table is polled. */
const LOCKED_PAUSE_MS = 3_000;

/** The houses file as a process applies it. */
export interface HousesInForce {
  /**
   * Applies the file of the start. If a table is locked it returns after one attempt, and repeats in the background: an
   * error there stops the process.
   */
  start(houses: readonly HouseEntry[]): Promise<void>;
  /**
   * Applies the file that `read` returns, after the attempt that runs; a file that still waits for a locked table is
   * given up. If `read` throws, nothing changes.
   */
  reload(read: () => Promise<readonly HouseEntry[]>): Promise<void>;
}

interface HousesOptions {
  sql: Sql;
  demo: Pick<DemoServer, "refresh">;
  /** The path of the file, for the log. */
  file: string;
  log: Log;
  lockedPauseMs?: number;
}

/** Applies a houses file, and later ones, one after another; the one that was requested last stays in force. */
export function createHousesInForce(
  life: Pick<Life, "ending" | "fail" | "onStop">,
  { sql, demo, file, log, lockedPauseMs = LOCKED_PAUSE_MS }: HousesOptions,
): HousesInForce {
  const { ending } = life;
  const enqueue = pLimit(1);
  let requested = 0;
  let newest = { number: 0, isReplaced: new AbortController() };
  life.onStop("the houses file", () => enqueue(() => undefined));

  async function attempt(houses: readonly HouseEntry[], ended: AbortSignal, onLocked: () => Promise<void>) {
    const applied = await applyHouses(sql, houses, async (tables) => {
      const locked = tables.slice(0, TABLES_NAMED).join(", ") || "a row";
      log.warn(`${file} is not applied yet: another session, such as an import, keeps ${locked} locked`);
      await onLocked();
      await delay(lockedPauseMs, undefined, { signal: ended });
    });
    await demo.refresh(houses);
    const disabled = applied.disabled.length === 0 ? "" : `; no longer polled: ${applied.disabled.join(", ")}`;
    log.info(`${file}: ${applied.houses} houses, ${applied.tables} tables${disabled}`);
  }

  async function apply(read: () => Promise<readonly HouseEntry[]>, onLocked = () => Promise.resolve()) {
    const number = ++requested;
    const houses = await read();
    if (number < newest.number) return; // a file that was requested later was read sooner
    newest.isReplaced.abort();
    newest = { number, isReplaced: new AbortController() };
    const ended = AbortSignal.any([ending, newest.isReplaced.signal]);
    await enqueue(async () => {
      try {
        if (!ended.aborted) await attempt(houses, ended, onLocked);
      } catch (error) {
        if (!ended.aborted) throw error;
      }
    });
  }

  return {
    async start(houses) {
      const locked = Promise.withResolvers<"locked">();
      const applying = apply(
        () => Promise.resolve(houses),
        async () => {
          await demo.refresh(houses); // those that are stored are polled meanwhile
          locked.resolve("locked");
        },
      );
      if ((await Promise.race([applying, locked.promise])) !== "locked") return;
      applying.catch((error: unknown) => life.fail(`${file} cannot be applied: ${reasonOf(error)}`));
    },
    reload: (read) => apply(read),
  };
}
