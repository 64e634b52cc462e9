import type { Settings } from "../../config/environment.ts";
import type { HouseEntry } from "../../houses-file/load.ts";
import { usd } from "../../money.ts";
import { servesThisMachineAlone } from "../../this-machine.ts";
import type { TopupMethod } from "../contract.ts";

/** Smallest and largest demo payment, in 1e-6 USD. */
export const DEMO_MICROS = { least: 1_000_000n, most: 10_000_000_000n } as const;

/**
 * Whether an instance is a demo: it listens on this machine only, and every house that it polls is a demo house. No
 * setting turns it on, and one real house turns it off.
 */
export function isDemoInstance(
  settings: Pick<Settings, "HOST" | "PUBLIC_URL" | "TRUSTED_PROXIES">,
  houses: readonly { settings: Pick<HouseEntry["settings"], "demo" | "enabled"> }[],
): boolean {
  const polled = houses.filter((house) => house.settings.enabled);
  return servesThisMachineAlone(settings) && polled.length > 0 && polled.every((house) => house.settings.demo);
}

/** Demo money, which no setting enables: see {@link isDemoInstance}. */
export const demoPayment: TopupMethod = {
  id: "demo",
  label: "Demo payment",
  path: "/demo",
  isConfigured: () => false,
  about: () => ({
    time: "Immediately.",
    minimum: `${usd(DEMO_MICROS.least)} USD`,
    credited: "The amount that you enter. It is not real money.",
  }),
};
