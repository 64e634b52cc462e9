import { toDataURL } from "qrcode";
import { z } from "zod";
import { holderEntry } from "../../accounts/holders/holder-entry.ts";
import { appendAudit } from "../../audit/store.ts";
import { PageError } from "../../frame/errors.ts";
import { parseUsd, thousands, usd } from "../../money.ts";
import { beginOrder } from "../../topups/binance-pay/begin.ts";
import { binancePay, ORDER_MICROS, ORDER_MINUTES } from "../../topups/binance-pay/method.ts";
import { findOrder } from "../../topups/binance-pay/order-store.ts";
import { findTopup, listTopups } from "../../topups/topup-store.ts";
import { consoleAction, consolePage, type ConsoleParts } from "../contract.ts";
import { statusOf } from "./states.ts";

const MOST_LISTED = 50;
const PATH = "/top-up/binance-pay";
const crumbs = [{ label: "Top up", href: "/console/top-up" }];

/** The form for the amount of an order, and earlier orders. */
export const binancePayPage = consolePage({
  path: PATH,
  async show({ sql, settings }, { holder: { accountId } }) {
    if (!binancePay.isConfigured(settings)) return null;
    const topups = await listTopups(sql, accountId, { limit: MOST_LISTED + 1, method: "binance-pay" });
    const data = {
      orders: topups.slice(0, MOST_LISTED).map((topup) => ({ ...topup, status: statusOf(topup) })),
      isCut: topups.length > MOST_LISTED,
      least: thousands(usd(ORDER_MICROS.least)),
      most: thousands(usd(ORDER_MICROS.most)),
      minutes: ORDER_MINUTES,
      about: binancePay.about(settings),
    };
    return { template: "top-up/binance-pay", title: "Top up with Binance Pay", data, crumbs };
  },
});

/** One order: how to pay it, and its status. */
export const binancePayOrderPage = consolePage({
  path: `${PATH}/:id`,
  async show({ sql, settings }, { holder: { accountId }, params }) {
    const id = params["id"] ?? "";
    if (!binancePay.isConfigured(settings) || !/^\d{1,18}$/.test(id)) return null;
    const [topup, order] = await Promise.all([findTopup(sql, accountId, BigInt(id)), findOrder(sql, BigInt(id))]);
    if (topup === null || order === null || order.accountId !== accountId) return null;
    const mayPay = order.state === "open" && !order.isOver;
    // an order is created within seconds; the payment waits for a person
    const refreshSeconds = { new: 5, open: 15 }[order.state as string];
    const data = {
      topup,
      order,
      mayPay,
      qr: mayPay && order.qrContent !== null ? await toDataURL(order.qrContent, { margin: 2, width: 240 }) : null,
      amount: thousands(usd(order.micros)),
    };
    const title = `Order ${topup.reference}`;
    const up = [...crumbs, { label: "Binance Pay", href: `/console${PATH}` }];
    return {
      template: "top-up/binance-pay-order",
      title,
      data,
      crumbs: up,
      ...(refreshSeconds !== undefined && { refreshSeconds }),
    };
  },
});

const form = z.object({
  amount: z.string().trim().max(20),
});

/** Creates an order. The holder pays it in the app, or lets it expire. */
export const beginBinancePayAction = consoleAction({
  name: "topup.binance-pay",
  path: PATH,
  needs: ["terms"],
  form,
  async run({ sql, settings }: ConsoleParts, { holder, form: { amount } }) {
    if (!binancePay.isConfigured(settings)) throw new PageError(404, "there is nothing under this address");
    const micros = parseUsd(amount);
    if (micros === null) {
      return { ok: false, problem: `expected an amount such as 25 or 25.50, got ${JSON.stringify(amount)}` };
    }
    const begun = await sql.begin(async (tx) => {
      const done = await beginOrder(tx, { accountId: holder.accountId, micros });
      if (!done.ok) return done;
      const after = { topup: done.topupId, method: "binance-pay", usdt: usd(micros) };
      await appendAudit(tx, holderEntry(holder, { action: "topup.begin", after }));
      return done;
    });
    if (!begun.ok) return { ok: false, problem: begun.reason };
    const message = "Your order is being created. This page shows where to pay it in a few seconds.";
    return { ok: true, message, location: `/console${PATH}/${begun.topupId}` };
  },
});
