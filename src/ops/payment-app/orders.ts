import { z } from "zod";
import { binancePayOf } from "../../config/binance-pay.ts";
import { scheduleQuery, findKeyFacts, listOrders } from "../../topups/binance-pay/order-list-store.ts";
import { auditedAction } from "../audited-action.ts";
import { opsPage } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";
import { PER_PAGE } from "../payloads/listing.ts";

const STATES = ["new", "open", "paid", "strange", "closed"] as const;
const LOCATION = "/ops/payment-app";

const query = z.object({
  state: z.enum(["", ...STATES]).default(""),
  before: z
    .string()
    .regex(/^\d{0,18}$/, "expected a place in the list as a link of it has it")
    .default(""),
});

/** Orders at the payment app, with its last response for each. */
export const ordersPage = opsPage({
  path: "/payment-app",
  nav: { label: "Payment app", order: 31, group: "Money" },
  query,
  async show({ sql, settings }, { query: { state, before } }) {
    const [found, keys] = await Promise.all([
      listOrders(sql, { state: state === "" ? null : state, before: idOf(before), limit: PER_PAGE + 1 }),
      findKeyFacts(sql),
    ]);
    const rows = found.slice(0, PER_PAGE);
    const next = found.length > PER_PAGE ? (rows.at(-1)?.topupId ?? null) : null;
    const isConfigured = binancePayOf(settings) !== null;
    const data = { rows, next, keys, isConfigured, states: STATES, query: { state, before } };
    const crumbs = [{ label: "Ledger", href: "/ops/ledger" }];
    return { template: "payment-app/orders", title: "Payment app", data, crumbs };
  },
});

/** Queries an order immediately. */
export const checkOrderAction = auditedAction({
  name: "order.ask",
  path: "/payment-app/:topup/ask",
  roles: ["operator"],
  isDangerous: false,
  async change(tx, { params }) {
    const topupId = idOf(params["topup"]);
    if (topupId === null || !(await scheduleQuery(tx, topupId))) {
      return { ok: false, problem: "there is no such order that was created and is not credited" };
    }
    const message = "The order is checked within seconds. Reload this page to see the result.";
    return { ok: true, target: `top-up ${topupId}`, message, location: LOCATION };
  },
});
