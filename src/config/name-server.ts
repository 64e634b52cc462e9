import { isIP } from "node:net";

/** Whether a text is a name server: an address, or one with a port, then IPv6 in brackets. */
export function isNameServer(text: string): boolean {
  if (isIP(text) !== 0) return true;
  const [, ipv6, ipv4 = "", port] = /^(?:\[(.+)\]|([\d.]+)):(\d{1,5})$/.exec(text) ?? [];
  const isPort = Number(port) >= 1 && Number(port) <= 65_535;
  return isPort && (ipv6 === undefined ? isIP(ipv4) === 4 : isIP(ipv6) === 6);
}
