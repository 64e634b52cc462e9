import { isIP } from "node:net";
import type { Settings } from "./config.ts";

/**
 * Whether only people at this machine reach what is served: we listen on loopback, and nothing says that a proxy stands
 * before us.
 */
export function servesThisMachineAlone({
  HOST,
  PUBLIC_URL,
  TRUSTED_PROXIES,
}: Pick<Settings, "HOST" | "PUBLIC_URL" | "TRUSTED_PROXIES">): boolean {
  return (
    isLoopback(HOST) &&
    TRUSTED_PROXIES.length === 0 &&
    (PUBLIC_URL === undefined || isLoopback(new URL(PUBLIC_URL).hostname))
  );
}

/** Whether a name or address, in a URL's form or not, is this machine by itself. */
export function isLoopback(host: string): boolean {
  const plain = host.replaceAll(/[[\]]/g, "").toLowerCase();
  return plain === "localhost" || plain === "::1" || (isIP(plain) === 4 && plain.startsWith("127."));
}
