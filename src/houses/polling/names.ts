import { type LookupAddress, Resolver } from "node:dns";
import type { Resolve } from "./guard.ts";

/** How long one name server has for an answer, and how often each is asked. */
const ANSWER_WITHIN_MS = 1_000;
const TRIES = 2;

/**
 * Finds addresses by asking these name servers, instead of whatever the machine is set up with: the names of houses then
 * mean what they mean in public, and none of the machine's own. The addresses of both families come together, so that
 * whoever judges them sees all of them; a family that has none, or whose question fails, adds none.
 * @param servers such as `9.9.9.9` or `[2620:fe::fe]:53`
 */
export function askNameServers(servers: readonly string[]): Resolve {
  const resolver = new Resolver({ timeout: ANSWER_WITHIN_MS, tries: TRIES });
  resolver.setServers(servers);
  return (hostname, _, callback) => {
    const found: LookupAddress[] = [];
    let failure: NodeJS.ErrnoException | null = null;
    let isHalf = true;
    const hear = (family: 4 | 6) => (error: NodeJS.ErrnoException | null, addresses: string[] | undefined) => {
      failure ??= error;
      for (const address of addresses ?? []) found.push({ address, family });
      if (isHalf) isHalf = false;
      else if (found.length === 0) callback(failure, []);
      else callback(null, found);
    };
    resolver.resolve4(hostname, hear(4));
    resolver.resolve6(hostname, hear(6));
  };
}
