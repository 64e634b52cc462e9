import type { LookupAddress, LookupAllOptions } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import ipaddr from "ipaddr.js";

/** Thrown into the connection attempt: the address is blocked. The message states which and why. */
export class RefusedAddressError extends Error {
  override name = "RefusedAddressError";
}

/** Ranges that are not public: IANA's special-purpose registries, with multicast and the old class E. */
const REFUSED = [
  "0.0.0.0/8", // this network
  "10.0.0.0/8",
  "100.64.0.0/10", // carrier-grade NAT
  "127.0.0.0/8",
  "169.254.0.0/16", // link-local, and the metadata services of clouds
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24", // documentation
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16",
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, and broadcast
  "2001::/23", // protocol assignments, Teredo among them
  "2001:db8::/32", // documentation
  "2002::/16", // 6to4, which hides an IPv4 address
  "3fff::/20", // documentation
].map((range) => ipaddr.parseCIDR(range));

/**
 * All of IPv6 that is routed publicly. Everything else is refused without a list: loopback, unspecified, unique local,
 * link-local, multicast, IPv4 mapped (::ffff:0:0/96) or translated (64:ff9b::/96 and 64:ff9b:1::/48).
 */
const ROUTED_IPV6 = ipaddr.parseCIDR("2000::/3");

/** Whether this address (as text, with or without brackets or a zone) can be reached from anywhere on the internet. */
export function isPublicAddress(address: string): boolean {
  const bare = address.replaceAll(/^\[|\]$/g, "").replace(/%.*$/s, "");
  if (isIP(bare) === 0) return false; // ipaddr.js also reads short, octal and hexadecimal IPv4
  const parsed = ipaddr.parse(bare);
  if (parsed.kind() === "ipv6" && !parsed.match(ROUTED_IPV6)) return false;
  return !REFUSED.some((range) => range[0].kind() === parsed.kind() && parsed.match(range));
}

/**
 * Why a URL is blocked, or null if nothing in its text is. Names are checked when they are resolved (see
 * {@link guardedLookup}); literal addresses are never resolved, so they are checked here. The URL parser has already
 * normalized spellings such as 0x7f.1 or 2130706433 to 127.0.0.1.
 */
export function refuseUrl(url: URL, allowPrivate: boolean): string | null {
  if (url.protocol !== "https:" && !(allowPrivate && url.protocol === "http:")) {
    return `${url.protocol}// is refused; expected https`;
  }
  if (url.username !== "" || url.password !== "") {
    return "a URL with a user or password is refused; send them in a header";
  }
  if (allowPrivate) return null;
  if (url.port !== "") return `port ${url.port} is refused; expected 443`;
  const host = url.hostname.replaceAll(/^\[|\]$/g, "");
  if (isIP(host) !== 0 && !isPublicAddress(host)) return `${host} is not a public address`;
  return null;
}

/**
 * Resolves a name once per connection and refuses it if any of its addresses is not public. The connection is made to
 * exactly these addresses, so that a name cannot resolve differently between the check and the use.
 */
export function guardedLookup(
  lookup: Resolve,
  isAllowed: (address: string) => boolean = isPublicAddress,
): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, []);
      const refused = addresses.find(({ address }) => !isAllowed(address));
      if (refused !== undefined) {
        const reason = `${hostname} resolves to ${refused.address}, which is not a public address`;
        return callback(new RefusedAddressError(reason), []);
      }
      const [first] = addresses;
      if (first === undefined) return callback(new RefusedAddressError(`${hostname} has no address`), []);
      return options.all === true ? callback(null, addresses) : callback(null, first.address, first.family);
    });
  };
}

/** Finds all addresses of a name, like `lookup` of node:dns. */
export type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;
