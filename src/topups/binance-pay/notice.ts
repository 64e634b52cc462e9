import { z } from "zod";
import type { Sql } from "../../db/client.ts";
import type { Log } from "../../log.ts";
import { findPublicKey, takeNotice, type TakenNotice } from "./notice-store.ts";
import { isSignedWith } from "./sign.ts";
import { isOurTradeNo } from "./trade-no.ts";

/** The accepted age of a notification, or time ahead, by the database clock. */
const WINDOW_SECONDS = 300;

const header = z.object({
  timestamp: z.string().regex(/^\d{13}$/),
  nonce: z.string().regex(/^[A-Za-z0-9_-]{16,64}$/),
  serial: z.string().regex(/^[A-Za-z0-9_-]{1,128}$/),
  signature: z.string().regex(/^[A-Za-z0-9+/]{40,1400}={0,2}$/),
});

const order = z.object({ merchantTradeNo: z.string() });

/**
 * The fields that we read. `bizIdStr` is the payment app's id of the order, a text because it exceeds safe integers;
 * `data` is JSON in a text.
 */
const content = z.object({
  bizType: z.string().max(40),
  bizIdStr: z.string().regex(/^[A-Za-z0-9]{1,64}$/),
  bizStatus: z.string().max(40),
  data: z.unknown().optional(),
});

/** A notification as received: header names in lower case, the body's exact bytes. */
export interface RawNotice {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: Uint8Array;
}

/** The response. The payment app sends the notification again if `returnCode` is not SUCCESS. */
export interface NoticeResponse {
  status: number;
  body: { returnCode: "SUCCESS" | "FAIL"; returnMessage: string | null };
}

/**
 * Accepts a notification of the payment app. It is only a hint to query an order: its content is not trusted and
 * nothing is credited here. Refused if headers are missing, if it is not signed with one of the payment app's keys, if
 * it is more than five minutes old or ahead, or if its nonce was used before.
 */
export async function acceptNotice(sql: Sql, log: Log, { headers, body }: RawNotice): Promise<NoticeResponse> {
  const given = header.safeParse({
    timestamp: headers["binancepay-timestamp"],
    nonce: headers["binancepay-nonce"],
    serial: headers["binancepay-certificate-sn"],
    signature: headers["binancepay-signature"],
  });
  if (!given.success) {
    return refuse(log, 400, "expected the headers BinancePay-Timestamp, -Nonce, -Certificate-SN and -Signature");
  }
  const { timestamp, nonce, serial, signature } = given.data;
  const publicKey = await findPublicKey(sql, serial);
  if (publicKey === null) return refuse(log, 401, "the certificate is not known here yet; send it again later");
  if (!isSignedWith(publicKey, signature, { timestamp, nonce, body }))
    return refuse(log, 401, "the signature does not fit");
  const notice = readNotice(body);
  if (notice === null) return refuse(log, 400, "expected JSON with bizType, bizIdStr and bizStatus");
  const { bizType, bizIdStr: prepayId, bizStatus, data } = notice;
  const isOurPayment = bizStatus === "PAY_SUCCESS" && mayBeOurs(data);
  const isRefund = bizType === "PAY_REFUND" && bizStatus !== "REFUND_REJECTED";
  const hint = { timestampMs: Number(timestamp), nonce, prepayId, isOurPayment, isRefund };
  const taken = await takeNotice(sql, hint, WINDOW_SECONDS);
  if (taken === "too-old") return refuse(log, 401, `the time is more than ${WINDOW_SECONDS / 60} minutes from ours`);
  if (taken === "seen") return refuse(log, 409, "the nonce came before");
  log.info({ bizType, bizStatus, prepayId, taken }, `Binance Pay sent a notice of ${orderOf(taken)}`);
  return { status: 200, body: { returnCode: "SUCCESS", returnMessage: null } };
}

/** Whether the order of a notification may be ours: it has a trade number of our form, or none. */
export function mayBeOurs(data: unknown): boolean {
  try {
    return isOurTradeNo(order.parse(JSON.parse(String(data))).merchantTradeNo);
  } catch {
    return true;
  }
}

/** Parses the body of a notification; null if it is not valid. */
export function readNotice(body: Uint8Array): z.infer<typeof content> | null {
  try {
    return content.parse(JSON.parse(Buffer.from(body).toString("utf8")));
  } catch {
    return null; // it was signed, and is still nothing that we know
  }
}

function orderOf(taken: TakenNotice): string {
  if (taken === "taken") return "an order; it is queried next";
  return taken === "refunded" ? "the refund of a credited order" : "an order that is not open here";
}

function refuse(log: Log, status: number, returnMessage: string): NoticeResponse {
  log.warn({ status }, `a notice for Binance Pay was refused: ${returnMessage}`);
  return { status, body: { returnCode: "FAIL", returnMessage } };
}
