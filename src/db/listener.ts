import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { roleOption } from "./take-role.ts";

/** Soon enough that nobody waits for it, since whoever listens also looks by itself. */
const RETRY_MS = 1_000;
/** A server that is gone without a word does not answer a farewell either. */
const FAREWELL_MS = 1_000;

/** What to do with what is heard. */
export interface Hearing {
  /** Channels, by the names they are announced under. */
  channels: readonly string[];
  heard: (channel: string) => void;
  /** All channels are listened to, at first and after each lost connection: what was said before is not heard. */
  joined: () => void;
}

/** Listens until it is closed. */
export interface Listener {
  close(): Promise<void>;
}

/**
 * Listens on a connection of its own, made again whenever it is lost. Never throws: a listener who hears nothing must
 * look by itself anyway. `directUrl` must not lead through a transaction pooler, where a session cannot listen.
 */
export function listen(directUrl: string, { channels, heard, joined }: Hearing, log: Log): Listener {
  const closing = new AbortController();
  let isLost = false;

  async function keepListening(): Promise<void> {
    while (!closing.signal.aborted) {
      const reason = await listenOnce();
      if (closing.signal.aborted) return;
      if (!isLost) log.warn(`changes are not announced to us, so we look by ourselves: ${reason}`);
      isLost = true;
      await delay(RETRY_MS, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  }

  /** Gives the reason why it listens no more. */
  async function listenOnce(): Promise<string> {
    const connection = new pg.Client({
      connectionString: directUrl,
      application_name: "roundhouse listener",
      options: roleOption(directUrl),
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    });
    const lost = new Promise<string>((resolve) => {
      // stays: an error without a listener would end the process
      connection.on("error", (error) => resolve(reasonOf(error)));
      connection.once("end", () => resolve("the connection ended"));
    });
    connection.on("notification", ({ channel }) => heard(channel));
    const leave = () => void sayFarewell(connection);
    try {
      await connection.connect();
      closing.signal.addEventListener("abort", leave, { once: true });
      if (closing.signal.aborted) return "closed";
      for (const channel of channels) await connection.query(`listen ${pg.escapeIdentifier(channel)}`);
      if (isLost) log.info("changes are announced to us again");
      isLost = false;
      joined();
      return await lost;
    } catch (error) {
      return reasonOf(error);
    } finally {
      closing.signal.removeEventListener("abort", leave); // or each lost connection would be kept until the last is closed
      await sayFarewell(connection);
    }
  }

  const listening = keepListening();
  return {
    async close() {
      closing.abort();
      await listening; // a connection that is being made ends as soon as it is, or fails
    },
  };
}

async function sayFarewell(client: pg.Client): Promise<void> {
  await Promise.race([client.end(), delay(FAREWELL_MS, undefined, { ref: false })]);
}
