import { isIP } from "node:net";

/** Is this how a name server is given: an address, or one with a port, IPv6 then in brackets? */
export function isNameServer(text: string): boolean {
  if (isIP(text) !== 0) return true;
  const [, ipv6, ipv4 = "", port] = /^(?:\[(.+)\]|([\d.]+)):(\d{1,5})$/.exec(text) ?? [];
  const isPort = Number(port) >= 1 && Number(port) <= 65_535;
  return isPort && (ipv6 === undefined ? isIP(ipv4) === 4 : isIP(ipv6) === 6);
}
