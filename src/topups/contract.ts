/**
 * What all top-up methods share: a row in `topups` from the announcement or first sight of the money until the credit,
 * and a page at `/console/top-up`.
 */
import type { Settings } from "../config/environment.ts";

export const METHOD_IDS = ["bank", "usdt", "binance-pay", "demo"] as const;
/** The method of a top-up. */
export type MethodId = (typeof METHOD_IDS)[number];

/**
 * `expected`: announced, nothing has arrived. `seen`: arrived and in review, by people or by a chain. `credited`: was
 * added to the wallet, and is there unless it was reversed. `rejected`: never credited. `cancelled`: the holder will not send it. `expired`: it did not
 * arrive in time. Money that arrives after `cancelled` or `expired` is still accepted.
 */
export type TopupState = "expected" | "seen" | "credited" | "rejected" | "cancelled" | "expired";

/** A top-up method. If it is not configured, it is not offered and its pages respond with 404. */
export interface TopupMethod {
  id: MethodId;
  /** The name that people know: `Bank transfer`. */
  label: string;
  /** Below `/console/top-up`: `/bank`. */
  path: string;
  isConfigured(settings: Settings): boolean;
  /** Full sentences for the choice of a method: its duration, the sensible minimum, and what is credited. */
  about(settings: Settings): { time: string; minimum: string; credited: string };
}

/** A top-up as its holder and operators see it. */
export interface Topup {
  id: bigint;
  accountId: bigint;
  method: MethodId;
  reference: string;
  state: TopupState;
  /** The credited amount, in 1e-6 USD. Before the credit it is the requested amount, null if unknown or not in USD. */
  amountMicros: bigint | null;
  requestedAt: Date;
  expiresAt: Date | null;
  creditedAt: Date | null;
  transactionId: bigint | null;
  /** When its credit was reversed; null if it was not. */
  reversedAt: Date | null;
  /** Why it was rejected. */
  reason: string | null;
  /** The method's own data: texts by name. */
  details: Readonly<Record<string, string>>;
}
