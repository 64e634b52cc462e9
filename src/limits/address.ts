import { isIPv4, isIPv6 } from "node:net";

/**
 * What of an address stands for whoever uses it: an IPv4 address as it is, of IPv6 the first 64 bits, since one holder
 * has all of the rest. Some proxies add a port, which changes with every connection and is left out; whatever is no
 * address is one.
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
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined && isIPv4(mapped)) return mapped;
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return "unknown";
  const [bare = ""] = address.split("%");
  const [head = "", tail] = bare.split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const hidden = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const groups = [...before, ...Array.from({ length: hidden }, () => "0"), ...after];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
