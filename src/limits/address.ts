import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/**
 * The part of an address that identifies its user: an IPv4 address whole, of IPv6 the first 64 bits, because one holder
 * has all of the rest. Some proxies add a port, which changes with every connection and is removed. All texts that are
 * no address count as one.
 *
 * @example
 * networkOf("203.0.113.9"); // => "203.0.113.9"
 * networkOf("::ffff:203.0.113.9"); // => "203.0.113.9"
 * networkOf("2001:db8:0:7::1"); // => "2001:db8:0:7"
 * networkOf("2001:db8::7:0:0:0:1"); // => "2001:db8:0:7"
 * networkOf("::1"); // => "0:0:0:0"
 * networkOf("203.0.113.9:51234"); // => "203.0.113.9"
 * networkOf("[2001:db8:0:7::1]:4711"); // => "2001:db8:0:7"
 * networkOf("anything"); // => "unknown"
 */
export function networkOf(given: string): string {
  const address = /^\[(.+)\]:\d+$/.exec(given)?.[1] ?? /^([\d.]+):\d+$/.exec(given)?.[1] ?? given;
  const [bare = ""] = address.split("%");
  if (isIP(bare) === 0) return "unknown"; // ipaddr.js also accepts short, octal and hexadecimal IPv4
  const parsed = ipaddr.process(bare); // an IPv4-mapped address as IPv4
  const normalized = parsed.toNormalizedString();
  return parsed.kind() === "ipv4" ? normalized : normalized.split(":").slice(0, 4).join(":");
}

/** How many times as much as one network the networks of an IPv6 site may have together. */
const SITE_FACTOR = 4;

/**
 * The networks of an address that limits are counted by, each with the factor of its size: its own, and of IPv6 the first 48
 * bits too, because a customer may have all the networks below them (RFC 6177).
 *
 * @example
 * networksOf("203.0.113.9"); // => [{ network: "203.0.113.9", factor: 1 }]
 * networksOf("2001:db8:0:7::1"); // => [{ network: "2001:db8:0:7", factor: 1 }, { network: "2001:db8:0", factor: 4 }]
 */
export function networksOf(given: string): { network: string; factor: number }[] {
  const network = networkOf(given);
  const own = { network, factor: 1 };
  if (!network.includes(":")) return [own];
  return [own, { network: network.split(":").slice(0, 3).join(":"), factor: SITE_FACTOR }];
}

/**
 * An address without its last part, for texts in which the whole would say too much: a quarter of IPv4, all but the first 48
 * bits of IPv6.
 *
 * @example
 * shortAddress("203.0.113.9"); // => "203.0.113.x"
 * shortAddress("2001:db8:0:7::1"); // => "2001:db8:0:x"
 * shortAddress("anything"); // => "unknown"
 */
export function shortAddress(given: string): string {
  const network = networkOf(given);
  return network === "unknown" ? network : network.replace(/[^.:]+$/, "x");
}
