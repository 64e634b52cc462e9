import { randomBytes } from "node:crypto";
import { isIP } from "node:net";
import { hostname } from "node:os";

/** A new name for this process that no other process has: its host, its pid and a random part. */
export function nameProcess(): string {
  return `${hostname()}-${process.pid}-${randomBytes(3).toString("hex")}`;
}

/**
 * Whether only this machine can reach the server: it listens on loopback, and no setting indicates a proxy in front of
 * it.
 */
export function servesThisMachineAlone({
  HOST,
  PUBLIC_URL,
  TRUSTED_PROXIES,
}: {
  HOST: string;
  PUBLIC_URL?: string | undefined;
  TRUSTED_PROXIES: readonly string[];
}): boolean {
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
