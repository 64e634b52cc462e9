import type { z } from "zod";
import { reasonOf } from "../../errors.ts";
import { cut } from "../../text.ts";
import { ORDER_CURRENCY } from "./method.ts";
import {
  queriedOrder,
  certificates,
  madeOrder,
  wrapped,
  type QueriedOrder,
  type Certificate,
  type MadeOrder,
} from "./responses.ts";
import { newNonce, signedHeaders } from "./sign.ts";
import type { BinancePay } from "../../config/binance-pay.ts";

/** From the name lookup to the last byte. */
const TIMEOUT_MS = 10_000;
/** An order is about a kilobyte, all certificates together a little more. */
const LARGEST_RESPONSE = 64 << 10;
const LONGEST_REASON = 300;

/** The result of a call; errors are values. `code` is the payment app's own, if it refused. */
export type CallResult<Data> = { ok: true; data: Data } | { ok: false; code: string | null; reason: string };

/** An order to create. */
export interface OrderToMake {
  tradeNo: string;
  /** In whole micro-units; the payment app takes a decimal number. */
  amount: number;
  /** Milliseconds since 1970. */
  expiresAtMs: number;
  /** Our public address; null if unknown, and then the order has no return URL. */
  site: string | null;
  topupId: bigint;
}

/** The calls that we make. */
export interface BinancePayClient {
  createOrder(order: OrderToMake): Promise<CallResult<MadeOrder>>;
  queryOrder(prepayId: string): Promise<CallResult<QueriedOrder>>;
  closeOrder(prepayId: string): Promise<CallResult<unknown>>;
  fetchCertificates(): Promise<CallResult<Certificate[]>>;
}

/**
 * Makes a client of the payment app. A call takes at most `timeoutMs` (10 s) and 64 KiB, without redirects or retries.
 */
export function createClient(app: BinancePay, signal: AbortSignal, { timeoutMs = TIMEOUT_MS } = {}): BinancePayClient {
  const ask = <Data>(path: string, body: object, schema: z.ZodType<Data>) =>
    askOnce(app, signal, { path, body, schema, timeoutMs });
  return {
    createOrder: ({ tradeNo, amount, expiresAtMs, site, topupId }) =>
      ask(
        "/binancepay/openapi/v3/order",
        {
          env: { terminalType: "WEB" },
          merchantTradeNo: tradeNo,
          orderAmount: amount,
          currency: ORDER_CURRENCY,
          description: "Top-up of a balance",
          goodsDetails: [
            { goodsType: "02", goodsCategory: "Z000", referenceGoodsId: "balance", goodsName: "Top-up of a balance" },
          ],
          orderExpireTime: expiresAtMs,
          ...(site !== null && {
            returnUrl: `${site}/console/top-up/binance-pay/${topupId}`,
            cancelUrl: `${site}/console/top-up/binance-pay/${topupId}`,
            webhookUrl: `${site}/topups/binance-pay/notify`,
          }),
        },
        madeOrder,
      ),
    queryOrder: (prepayId) => ask("/binancepay/openapi/v2/order/query", { prepayId }, queriedOrder),
    closeOrder: (prepayId) => ask("/binancepay/openapi/order/close", { prepayId }, wrapped.shape.data),
    fetchCertificates: () => ask("/binancepay/openapi/certificates", {}, certificates),
  };
}

async function askOnce<Data>(
  app: BinancePay,
  signal: AbortSignal,
  { path, body, schema, timeoutMs }: { path: string; body: object; schema: z.ZodType<Data>; timeoutMs: number },
): Promise<CallResult<Data>> {
  const text = Buffer.from(JSON.stringify(body));
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(app.url + path, {
      method: "POST",
      headers: signedHeaders(app, { timestamp: String(Date.now()), nonce: newNonce(), body: text }),
      body: text,
      redirect: "error",
      signal: AbortSignal.any([signal, deadline]),
    });
    const payload: unknown = JSON.parse(await readBounded(response));
    const outer = wrapped.safeParse(payload);
    if (!outer.success) return { ok: false, code: null, reason: `returned ${response.status} with an unexpected body` };
    const { status, code, data, errorMessage } = outer.data;
    if (status !== "SUCCESS")
      return { ok: false, code, reason: cut(`refused: ${code} ${errorMessage ?? ""}`.trim(), LONGEST_REASON) };
    const inner = schema.safeParse(data);
    if (inner.success) return { ok: true, data: inner.data };
    const where = inner.error.issues.map(({ path: at, message }) => `${at.join(".")}: ${message}`).join("; ");
    return {
      ok: false,
      code: null,
      reason: cut(`returned unexpected data (${where})`, LONGEST_REASON),
    };
  } catch (error) {
    signal.throwIfAborted();
    const reason = deadline.aborted
      ? `did not respond within ${timeoutMs / 1_000} s`
      : cut(reasonOf(error), LONGEST_REASON);
    return { ok: false, code: null, reason };
  }
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > LARGEST_RESPONSE) throw new Error("returned more than 64 KiB");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
