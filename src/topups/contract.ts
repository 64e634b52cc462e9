/**
 * What every way to pay in has in common: a row in `topups` from when money is announced or first seen until it is in
 * the wallet, and a page of its own at `/console/top-up`.
 */
import type { Settings } from "../config/environment.ts";

export const METHOD_IDS = ["bank", "usdt", "binance-pay", "demo"] as const;
/** Which way money takes. */
export type MethodId = (typeof METHOD_IDS)[number];

/**
 * `expected`: announced, nothing came yet. `seen`: it came and is looked at, by people or by a chain. `credited`: it is
 * in the wallet, for good. `rejected`: it will not be. `cancelled`: its holder will not send it. `expired`: it did not
 * come in time; money that comes after `cancelled` or `expired` is taken all the same.
 */
export type TopupState = "expected" | "seen" | "credited" | "rejected" | "cancelled" | "expired";

/** A way to pay in. One that is not configured is shown nowhere, and its pages are not found. */
export interface TopupMethod {
  id: MethodId;
  /** What people call it: `Bank transfer`. */
  label: string;
  /** Below `/console/top-up`: `/bank`. */
  path: string;
  isConfigured(settings: Settings): boolean;
  /** Whole sentences for who chooses: how long it takes, the least that makes sense, and what is credited. */
  about(settings: Settings): { time: string; minimum: string; credited: string };
}

/** A top-up as its holder and operators see it. */
export interface Topup {
  id: bigint;
  accountId: bigint;
  method: MethodId;
  reference: string;
  state: TopupState;
  /** What was credited, in 1e-6 USD; before that what is asked for, null where that is not known or not in USD. */
  amountMicros: bigint | null;
  requestedAt: Date;
  expiresAt: Date | null;
  creditedAt: Date | null;
  transactionId: bigint | null;
  /** Why it was rejected. */
  reason: string | null;
  /** What its method keeps of it: texts by name. */
  details: Readonly<Record<string, string>>;
}
