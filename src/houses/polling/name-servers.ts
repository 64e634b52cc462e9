import { type LookupAddress, Resolver } from "node:dns";
import type { Resolve } from "./guard.ts";

/** The timeout of a query to a name server, and its attempts. */
const QUERY_TIMEOUT_MS = 1_000;
const TRIES = 2;

/**
 * Resolves addresses with these name servers instead of the machine's configuration: names of houses then have their public
 * meaning, and none of the machine's own names is visible. The addresses of both families are returned together, so that
 * all of them can be checked; a family without addresses, or whose query fails, adds none.
 * @param servers such as `9.9.9.9` or `[2620:fe::fe]:53`
 */
export function resolveWith(servers: readonly string[]): Resolve {
  const resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: TRIES });
  resolver.setServers(servers);
  return (hostname, _, callback) => {
    const found: LookupAddress[] = [];
    let failure: NodeJS.ErrnoException | null = null;
    let isHalf = true;
    const collect = (family: 4 | 6) => (error: NodeJS.ErrnoException | null, addresses: string[] | undefined) => {
      failure ??= error;
      for (const address of addresses ?? []) found.push({ address, family });
      if (isHalf) isHalf = false;
      else if (found.length === 0) callback(failure, []);
      else callback(null, found);
    };
    resolver.resolve4(hostname, collect(4));
    resolver.resolve6(hostname, collect(6));
  };
}
