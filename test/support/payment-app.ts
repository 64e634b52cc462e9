import { createHash, createHmac, createSign, generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Key and secret of the merchant at the payment app. */
export const KEY = "merchant-key-of-a-test";
export const SECRET = "merchant-secret-of-a-test";

/** An order at the payment app. */
export interface ProviderOrder {
  prepayId: string;
  merchantTradeNo: string;
  status: string;
  currency: string;
  orderAmount: string;
  asked: Record<string, unknown>;
}

/** The payment app, as its public specification describes it, with its own key pair. */
export interface Provider {
  url: string;
  orders: Map<string, ProviderOrder>;
  /** Requested paths, in order. */
  calls: string[];
  /** How the next calls of a path fail: a status, or a connection that is cut after the call was carried out. */
  failing: Map<string, "cut" | "huge" | { code: string; errorMessage: string }>;
  /** Changes a response, given its path; null for none. */
  lie: ((path: string, body: Record<string, unknown>) => Record<string, unknown>) | null;
  /** Cuts every connection before it does anything. */
  isAway: boolean;
  /** Runs once, after the next call was carried out and before its response is sent. */
  beforeResponse: (() => Promise<void>) | null;
  /** A notice as it is sent, signed; what is changed is changed before it is signed. */
  notice(
    order: ProviderOrder,
    changed?: { timestamp?: string; nonce?: string; bizType?: string; bizStatus?: string },
  ): SentNotice;
  serial: string;
  close(): Promise<void>;
}

/** A notification as it is sent. */
export interface SentNotice {
  headers: Record<string, string>;
  body: string;
}

/** Starts a payment app. */
export async function startProvider(): Promise<Provider> {
  const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const certPublic = pair.publicKey.export({ type: "spki", format: "pem" }).toString();
  const serial = createHash("md5").update(certPublic).digest("hex");
  const orders: Provider["orders"] = new Map();
  const calls: string[] = [];
  const failing: Provider["failing"] = new Map();

  const routes: Record<string, (asked: Record<string, unknown>) => unknown> = {
    "/binancepay/openapi/certificates": () => [{ certSerial: serial, certPublic }],
    "/binancepay/openapi/v3/order": (asked) => {
      const prepayId = String(29_383_937_493_038_367_000n + BigInt(orders.size));
      const merchantTradeNo = String(asked["merchantTradeNo"]);
      const known = [...orders.values()].some((one) => one.merchantTradeNo === merchantTradeNo);
      if (known || !/^[A-Za-z0-9]{1,32}$/.test(merchantTradeNo))
        throw new Error("400201 merchantTradeNo is invalid or duplicated");
      const orderAmount = Number(asked["orderAmount"]).toFixed(8);
      orders.set(prepayId, {
        prepayId,
        merchantTradeNo,
        status: "INITIAL",
        currency: String(asked["currency"]),
        orderAmount,
        asked,
      });
      return {
        prepayId,
        terminalType: "WEB",
        expireTime: asked["orderExpireTime"],
        qrcodeLink: `https://pay.example/qr/${prepayId}.jpg`,
        qrContent: `https://pay.example/qr/${prepayId}`,
        checkoutUrl: `https://pay.example/checkout/${prepayId}`,
        deeplink: "bnc://app/x",
        universalUrl: "https://app.example/x",
        totalFee: orderAmount,
        currency: asked["currency"],
      };
    },
    "/binancepay/openapi/v2/order/query": ({ prepayId }) => {
      const order = orders.get(String(prepayId));
      if (order === undefined) throw new Error("400202 order not found");
      const { asked: _, ...reported } = order;
      return { merchantId: 98_765, ...reported, createTime: 1_425_702_060, transactTime: null };
    },
    "/binancepay/openapi/order/close": ({ prepayId }) => {
      const order = orders.get(String(prepayId));
      if (order?.status === "INITIAL") order.status = "CANCELED";
      return true;
    },
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "";
    calls.push(path);
    if (provider.isAway) return void response.destroy();
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const respond = (given: Record<string, unknown>) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(provider.lie?.(path, given) ?? given));
    };
    const [time, nonce, signature] = ["timestamp", "nonce", "signature"].map((name) =>
      String(request.headers[`binancepay-${name}`]),
    );
    const expected = createHmac("sha512", SECRET).update(`${time}\n${nonce}\n${body}\n`).digest("hex").toUpperCase();
    if (
      signature !== expected ||
      request.headers["binancepay-certificate-sn"] !== KEY ||
      !/^[a-zA-Z]{32}$/.test(nonce ?? "")
    ) {
      return respond({ status: "FAIL", code: "400002", errorMessage: "Signature for this request is not valid." });
    }
    const failure = failing.get(path);
    const route = routes[path];
    try {
      const data = route?.(JSON.parse(body) as Record<string, unknown>);
      const { beforeResponse } = provider;
      provider.beforeResponse = null;
      await beforeResponse?.();
      if (failure === "cut") return void response.destroy(); // the call was carried out, and its response is lost
      if (failure === "huge") return respond({ status: "SUCCESS", code: "000000", data: "x".repeat(70_000) });
      if (failure !== undefined) return respond({ status: "FAIL", ...failure });
      respond({ status: "SUCCESS", code: "000000", data, errorMessage: "" });
    } catch (error) {
      const [code = "", ...words] = (error as Error).message.split(" ");
      respond({ status: "FAIL", code, errorMessage: words.join(" ") });
    }
  }

  const server = createServer((request, response) => void serve(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const provider: Provider = {
    lie: null,
    isAway: false,
    beforeResponse: null,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    orders,
    calls,
    failing,
    serial,
    notice(order, changed = {}) {
      const {
        timestamp = String(Date.now()),
        nonce = randomBytes(16).toString("hex"),
        bizType = "PAY",
        bizStatus = "PAY_SUCCESS",
      } = changed;
      const { merchantTradeNo, currency, prepayId } = order;
      const data = JSON.stringify({ merchantTradeNo, totalFee: Number(order.orderAmount), currency, tradeType: "WEB" });
      const body = `{"bizType":"${bizType}","data":${JSON.stringify(data)},"bizIdStr":"${prepayId}","bizId":${prepayId},"bizStatus":"${bizStatus}"}`;
      const signature = createSign("sha256")
        .update(`${timestamp}\n${nonce}\n${body}\n`)
        .sign(pair.privateKey, "base64");
      return {
        body,
        headers: {
          "content-type": "application/json",
          "BinancePay-Timestamp": timestamp,
          "BinancePay-Nonce": nonce,
          "BinancePay-Signature": signature,
          "BinancePay-Certificate-SN": serial,
        },
      };
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return provider;
}
