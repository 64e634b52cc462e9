import { lookup, type LookupAddress, type LookupAllOptions } from "node:dns";
import { callbackify } from "node:util";
import pLimit from "p-limit";
import type { Resolve } from "./guard.ts";

/**
 * Concurrent lookups by the machine. Each occupies one of the four threads that files, gzip and passwords share, for up to
 * 10 s if the name server of one house does not respond, and cannot be cancelled.
 */
const AT_ONCE = 2;

/**
 * Resolves addresses as the machine is configured, by the C library. Requests for a name that is being resolved share the
 * result, so that a name that is resolved late occupies one thread, however many tables its house has.
 * @param resolve for tests
 */
export function resolveByMachine(resolve: Resolve = lookup): Resolve {
  const limit = pLimit(AT_ONCE);
  const pending = new Map<string, Promise<LookupAddress[]>>();
  const share = (hostname: string, options: LookupAllOptions): Promise<LookupAddress[]> => {
    const key = `${hostname} ${options.family ?? 0}`;
    const known = pending.get(key);
    if (known !== undefined) return known;
    const found = limit(
      () =>
        new Promise<LookupAddress[]>((done, fail) => {
          resolve(hostname, options, (error, addresses) => (error === null ? done(addresses) : fail(error)));
        }),
    ).finally(() => pending.delete(key));
    pending.set(key, found);
    return found;
  };
  return (hostname, options, callback) => {
    callbackify(() => share(hostname, options))((error, addresses) => callback(error, addresses));
  };
}
