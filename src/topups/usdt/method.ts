import { usd } from "../../money.ts";
import type { TopupMethod } from "../contract.ts";
import { usdtOf } from "../../config/usdt.ts";

/** USDT, sent to the account's own address. */
export const usdtOnChain: TopupMethod = {
  id: "usdt",
  label: "USDT on-chain",
  path: "/usdt",
  isConfigured: (settings) => usdtOf(settings) !== null,
  about: (settings) => {
    const { confirmations, network } = usdtFacts(settings);
    return {
      time: `After ${confirmations} blocks of ${network}, by itself, at any hour.`,
      minimum: `${usd(settings.USDT_MIN)} USDT; smaller deposits are kept, and credited together once they reach it.`,
      credited: "What arrives: 1 USDT is 1 USD.",
    };
  },
};

function usdtFacts(settings: Parameters<typeof usdtOf>[0]): { confirmations: number; network: string } {
  const usdt = usdtOf(settings);
  if (usdt === null) throw new Error("expected USDT to be configured where it is described");
  return { confirmations: usdt.chain.confirmations, network: usdt.chain.name };
}
