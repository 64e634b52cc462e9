import { setTimeout as delay } from "node:timers/promises";
import type { Sql, Transaction } from "./client.ts";
import { isConnectionTrouble } from "./trouble.ts";

/** Between the error of a statement and the end of its connection pass microseconds. */
const LOSS_SHOWS_WITHIN_MS = 1_000;
const NEVER = new Promise<never>(() => undefined);

type Work = (transaction: Transaction) => unknown;

/**
 * A pool whose transactions bear the loss of their connection.
 *
 * The driver lets the work of a transaction go on after its connection is gone, and sends what the work still says, its own commit and rollback
 * too, on the same connection: once that is made anew, into somebody else's transaction. Here, once the connection is lost, every further
 * statement throws, and the driver never hears that the work ended; `begin` rejects with the loss.
 */
export function survivingLoss(sql: Sql): Sql {
  const driverBegin = sql.begin.bind(sql) as (...given: unknown[]) => Promise<unknown>;
  const begin = async (...given: unknown[]): Promise<unknown> => {
    const loss = watchForLoss();
    const transaction = driverBegin(...given.slice(0, -1), guarded(given.at(-1) as Work, loss));
    transaction.catch(loss.happened);
    return transaction;
  };
  return new Proxy(sql, {
    get: (target, name) => (name === "begin" ? begin : (Reflect.get(target, name) as unknown)),
  });
}

interface Loss {
  reason: { error: unknown } | null;
  happened: (error: unknown) => void;
  seen: Promise<void>;
}

function watchForLoss(): Loss {
  const { promise, resolve } = Promise.withResolvers<void>();
  const loss: Loss = {
    reason: null,
    happened(error) {
      loss.reason = { error };
      resolve();
    },
    seen: promise,
  };
  return loss;
}

function guarded(work: Work, loss: Loss): (transaction: Transaction) => Promise<unknown> {
  return async (transaction) => {
    try {
      const given = work(refusingAfter(loss, transaction));
      const result = await (Array.isArray(given) ? Promise.all(given) : given);
      return loss.reason === null ? result : NEVER;
    } catch (error) {
      if (isConnectionTrouble(error)) await seenSoon(loss);
      if (loss.reason !== null) return NEVER;
      throw error;
    }
  };
}

/** A transaction, or a savepoint in it, that takes no statement once its connection is lost. */
function refusingAfter(loss: Loss, transaction: Transaction): Transaction {
  return new Proxy(transaction, {
    apply(target, self, given) {
      if (loss.reason !== null) throw asError(loss.reason.error);
      return Reflect.apply(target, self, given) as unknown;
    },
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (name !== "savepoint" || typeof value !== "function") return value;
      return (...given: unknown[]) => {
        const work = guarded(given.at(-1) as Work, loss);
        const savepoint = Reflect.apply(value, target, [...given.slice(0, -1), work]) as Promise<unknown>;
        // the driver never hears how its work ended, so whoever waits is told here
        return Promise.race([savepoint, loss.seen.then(() => Promise.reject(asError(loss.reason?.error)))]);
      };
    },
  });
}

async function seenSoon(loss: Loss): Promise<void> {
  const patience = new AbortController();
  const patienceEnds = delay(LOSS_SHOWS_WITHIN_MS, undefined, { signal: patience.signal });
  await Promise.race([loss.seen, patienceEnds]);
  patience.abort();
  await patienceEnds.catch(() => undefined); // it was called off
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
