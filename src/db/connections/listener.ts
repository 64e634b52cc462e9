import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { reasonOf } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { Connection } from "./connection.ts";
import { ConnectionLostError } from "../errors.ts";
import { roleOption } from "../roles/take-role.ts";

/** A short gap is harmless: every listener also polls. */
const RETRY_MS = 1_000;
/** A listener sends nothing, so only a query detects that its connection is silent. */
const CHECK_EVERY_MS = 5_000;
const DEADLINE_MS = 4_000;

/** What to do with notifications. */
export interface Subscription {
  channels: readonly string[];
  notified: (channel: string, payload: string) => void;
  /** Called when all channels are listened to, first and after each lost connection: earlier notifications are lost. */
  joined: () => void;
}

/** Listens until it is closed. */
export interface Listener {
  close(): Promise<void>;
}

/**
 * Listens on a separate connection, which is replaced when it is lost or silent. Never throws: its user must poll anyway.
 * `directUrl` must not lead through a transaction pooler, where a session cannot listen.
 */
export function listen(directUrl: string, { channels, notified, joined }: Subscription, log: Log): Listener {
  const closing = new AbortController();
  let isLost = false;

  async function keepListening(): Promise<void> {
    while (!closing.signal.aborted) {
      const reason = await listenOnce();
      if (closing.signal.aborted) return;
      if (!isLost) log.warn(`PostgreSQL sends no notifications, so changes are read at intervals: ${reason}`);
      isLost = true;
      await pause(RETRY_MS, closing.signal);
    }
  }

  /** Returns the reason why it stopped listening. */
  async function listenOnce(): Promise<string> {
    const connection = new Connection({
      connectionString: directUrl,
      application_name: "roundhouse listener",
      options: roleOption(directUrl),
    });
    connection.on("notification", ({ channel, payload }) => notified(channel, payload ?? ""));
    const destroy = () => connection.destroy(new ConnectionLostError("closed"));
    try {
      await connection.connect();
      if (closing.signal.aborted) return "closed";
      closing.signal.addEventListener("abort", destroy, { once: true });
      const names = channels.map((channel) => pg.escapeIdentifier(channel));
      await ask(connection, names.map((name) => `listen ${name}`).join("; "));
      if (isLost) log.info("PostgreSQL sends notifications again");
      isLost = false;
      joined();
      while (!closing.signal.aborted) {
        await pause(CHECK_EVERY_MS, closing.signal, connection);
        await ask(connection, "select 1");
      }
      return "closed";
    } catch (error) {
      return reasonOf(error);
    } finally {
      closing.signal.removeEventListener("abort", destroy); // otherwise each lost connection stays in memory
      await connection.close();
    }
  }

  const listening = keepListening();
  return {
    async close() {
      closing.abort();
      await listening; // a pending connection is closed as soon as it is made
    },
  };
}

/** Waits for `ms`, or until the listener is closed or the connection ends. */
async function pause(ms: number, closed: AbortSignal, connection?: Connection): Promise<void> {
  const ended = new AbortController();
  const end = () => ended.abort();
  connection?.once("end", end);
  const signal = AbortSignal.any([closed, ended.signal]);
  await delay(ms, undefined, { signal }).catch(() => undefined); // the wait was interrupted
  connection?.off("end", end);
}

function ask(connection: Connection, text: string): Promise<unknown> {
  return connection.exchange(() => connection.query(text), DEADLINE_MS);
}
