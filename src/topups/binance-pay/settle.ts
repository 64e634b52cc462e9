import { closeAlert, openAlert } from "../../alerts/store.ts";
import type { Sql, Transaction } from "../../db/client.ts";
import type { Log } from "../../log.ts";
import { creditTopup, lockTopup, saveTopupState } from "../topup-store.ts";
import { decideOrder, type QueriedOrder, type Verdict } from "./responses.ts";
import type { BinancePayClient } from "./client.ts";
import { isPublicKey } from "./sign.ts";
import { noteTry, saveCertificates } from "./notice-store.ts";
import { beginAttempt, findOrder, saveMadeOrder, saveOrderStep, leaseOrder, type AppOrder } from "./order-store.ts";

/** After so many failed attempts an order is given up: the holder starts again, or pays in another way. */
const MOST_ATTEMPTS = 5;
/** Notifications may be lost, so every open order is polled. */
const POLL_SECONDS = 300;
/** After a request without a response, and after a request to close an order. */
const SOON_SECONDS = 60;
/** For orders that a person has to check, or that get no response long after they ended. */
const SELDOM_SECONDS = 3_600;
/** The payment app's code for an order that it does not know. */
const UNKNOWN_ORDER = "400202";

/** What processing an order needs. */
export interface SettleParts {
  sql: Sql;
  client: BinancePayClient;
  /** Our public address; null if unknown. */
  site: string | null;
  log: Log;
}

/**
 * Processes one order: creates it, or queries its state and credits what was paid. Each step is stored before the next
 * one and can be repeated: every attempt to create an order has its own name, and the payment app's id is the
 * idempotency key of the credit.
 */
export async function processOrder(parts: SettleParts, topupId: bigint): Promise<Record<string, number>> {
  if (!(await leaseOrder(parts.sql, topupId))) return { skipped: 1 };
  const order = await findOrder(parts.sql, topupId);
  if (order === null || order.state === "paid") return { skipped: 1 };
  const { prepayId } = order;
  return prepayId === null ? makeOrder(parts, order) : settleOrder(parts, { ...order, prepayId });
}

/** Fetches the keys that sign notifications. Keys that are not RSA are left out. */
export async function refreshCertificates({ sql, client, log }: SettleParts): Promise<Record<string, number>> {
  await noteTry(sql);
  const result = await client.fetchCertificates();
  const keys = result.ok ? result.data.filter(({ certPublic }) => isPublicKey(certPublic)) : [];
  if (keys.length === 0) {
    const reason = result.ok ? "gave none that is an RSA key" : result.reason;
    log.warn(
      `the keys of Binance Pay's notices were not fetched: it ${reason}; its orders are asked for every 5 minutes meanwhile`,
    );
    return { failed: 1 };
  }
  await saveCertificates(sql, keys);
  return { certificates: keys.length };
}

async function makeOrder({ sql, client, site, log }: SettleParts, order: AppOrder): Promise<Record<string, number>> {
  const { topupId, attempts } = order;
  if (attempts >= MOST_ATTEMPTS) {
    log.warn(
      { topup: String(topupId) },
      `an order at Binance Pay was given up after ${attempts} tries: it ${order.lastError ?? "did not respond"}`,
    );
    const reason = "the payment app did not take the order; nothing was paid, so begin again or choose another way";
    await endOrder(sql, order, { state: "rejected", reason, providerStatus: null });
    return { given_up: 1 };
  }
  const tradeNo = `${order.tradeNo.slice(0, -1)}${attempts + 1}`;
  const attempt = await beginAttempt(sql, order, tradeNo);
  if (attempt === null) return { skipped: 1 };
  const amount = Number(order.micros) / 1_000_000; // at most ten thousand with six decimals: exact to the last one
  const result = await client.createOrder({ tradeNo, amount, site, topupId, ...attempt });
  if (!result.ok) {
    const askInSeconds = 10 * (attempts + 1);
    await saveOrderStep(sql, topupId, { from: "new", state: "new", askInSeconds, error: result.reason });
    log.warn({ topup: String(topupId) }, `Binance Pay did not make an order: it ${result.reason}`);
    return { failed: 1 };
  }
  const isSaved = await sql.begin((tx) => saveMadeOrder(tx, { topupId, tradeNo }, result.data));
  return isSaved ? { made: 1 } : { skipped: 1 };
}

async function settleOrder(
  parts: SettleParts,
  order: AppOrder & { prepayId: string },
): Promise<Record<string, number>> {
  const { sql, client, log } = parts;
  const { topupId, state, prepayId } = order;
  const result = await client.queryOrder(prepayId);
  if (!result.ok) {
    if (result.code === UNKNOWN_ORDER && order.isLongOver && state !== "strange") {
      const reason = "the payment app does not know the order any more; if you paid it, write to us";
      await endOrder(sql, { ...order, lastError: result.reason }, { state: "expired", reason, providerStatus: null });
      return { closed: 1 };
    }
    const askInSeconds = order.isOver ? SELDOM_SECONDS : SOON_SECONDS;
    await saveOrderStep(sql, topupId, { from: state, state, askInSeconds, error: result.reason });
    log.warn({ topup: String(topupId) }, `Binance Pay did not report the state of an order: it ${result.reason}`);
    return { failed: 1 };
  }
  const providerStatus = result.data.status;
  const verdict = decideOrder(order, result.data);
  switch (verdict.kind) {
    case "waiting": {
      if (order.isOver) await client.closeOrder(prepayId); // whether it did shows when it is asked for again
      const askInSeconds = order.isOver ? SOON_SECONDS : POLL_SECONDS;
      await saveOrderStep(sql, topupId, { from: state, state: "open", askInSeconds, providerStatus });
      return { waiting: 1 };
    }
    case "over":
      await endOrder(sql, order, { ...verdict, providerStatus });
      await closeAlert(sql, log, alertOf(order));
      return { closed: 1 };
    case "paid":
      return credit(parts, order, result.data);
    case "strange":
      return setAside(parts, order, result.data, verdict);
  }
}

async function credit(
  parts: SettleParts,
  order: AppOrder & { prepayId: string },
  queried: QueriedOrder,
): Promise<Record<string, number>> {
  const { sql, log } = parts;
  const { topupId, prepayId, micros } = order;
  const posted = await sql.begin(async (tx) => {
    await lockTopup(tx, topupId);
    const done = await creditTopup(tx, {
      topupId,
      micros,
      key: `binance-pay:${prepayId}`,
      cash: "cash_payapp",
      meta: { prepay_id: prepayId },
    });
    if (!done.ok) return done;
    const now = await findOrder(tx, topupId, { isHeld: true });
    const from = now?.state ?? order.state;
    await saveOrderStep(tx, topupId, { from, state: "paid", askInSeconds: null, providerStatus: queried.status });
    return done;
  });
  if (!posted.ok) return setAside(parts, order, queried, { reason: posted.message });
  await closeAlert(sql, log, alertOf(order));
  return posted.isReplay ? { skipped: 1 } : { credited: 1 };
}

/** Paid, but not as ordered: nothing is credited before a person has checked it. */
async function setAside(
  { sql, log }: SettleParts,
  order: AppOrder & { prepayId: string },
  queried: QueriedOrder,
  { reason }: { reason: string },
): Promise<Record<string, number>> {
  await sql.begin(async (tx) => {
    if ((await lockTopup(tx, order.topupId)).state === "credited") return;
    await saveTopupState(tx, order.topupId, "seen", "the payment does not match the order; we are checking it");
    const step = { askInSeconds: SELDOM_SECONDS, providerStatus: queried.status, error: reason };
    await saveOrderStep(tx, order.topupId, { from: order.state, state: "strange", ...step });
  });
  const text = `order ${order.tradeNo} (prepay id ${order.prepayId}) at Binance Pay is not what was ordered: ${reason}; nothing was credited, look at it in the merchant's portal`;
  await openAlert(sql, log, { ...alertOf(order), text });
  return { strange: 1 };
}

async function endOrder(
  sql: Sql,
  order: AppOrder,
  end: Pick<Extract<Verdict, { kind: "over" }>, "state" | "reason"> & { providerStatus: string | null },
): Promise<void> {
  const { topupId, state: from } = order;
  await sql.begin(async (tx: Transaction) => {
    if ((await lockTopup(tx, topupId)).state === "credited") return;
    await saveTopupState(tx, topupId, end.state, end.reason);
    const { providerStatus } = end;
    await saveOrderStep(tx, topupId, {
      from,
      state: "closed",
      askInSeconds: null,
      providerStatus,
      error: order.lastError,
    });
  });
}

function alertOf({ topupId }: AppOrder): { kind: string; subject: string } {
  return { kind: "topup", subject: `binance-pay ${topupId}` };
}
