import type { Settings } from "../config/environment.ts";
import { bankTransfer } from "./bank/method.ts";
import type { MethodId, TopupMethod } from "./contract.ts";
import { binancePay } from "./binance-pay/method.ts";
import { demoPayment } from "./demo/method.ts";
import { usdtOnChain } from "./usdt/method.ts";

/** Every way to pay in that settings offer, the fastest first. */
const methods: readonly TopupMethod[] = [binancePay, usdtOnChain, bankTransfer];

/** The ways that are set up here. */
export function configuredMethods(settings: Settings): readonly TopupMethod[] {
  return methods.filter((method) => method.isConfigured(settings));
}

/** What a way is called, set up or not. */
export function methodLabel(id: MethodId): string {
  return [demoPayment, ...methods].find((method) => method.id === id)?.label ?? id;
}
