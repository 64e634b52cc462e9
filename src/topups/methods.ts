import type { Settings } from "../config/environment.ts";
import { bankTransfer } from "./bank/method.ts";
import type { MethodId, TopupMethod } from "./contract.ts";
import { binancePay } from "./binance-pay/method.ts";
import { demoPayment } from "./demo/method.ts";
import { usdtOnChain } from "./usdt/method.ts";

/** Every method that settings can enable, the fastest first. */
const methods: readonly TopupMethod[] = [binancePay, usdtOnChain, bankTransfer];

/** Returns the configured methods. */
export function configuredMethods(settings: Settings): readonly TopupMethod[] {
  return methods.filter((method) => method.isConfigured(settings));
}

/** Returns the name of a method, configured or not. */
export function methodLabel(id: MethodId): string {
  return [demoPayment, ...methods].find((method) => method.id === id)?.label ?? id;
}
