import { describe, expect, test } from "vitest";
import { guardedLookup, isPublicAddress, RefusedAddressError, refuseUrl } from "../../../src/houses/polling/guard.ts";

type Lookup = NonNullable<Parameters<typeof guardedLookup>[0]>;
const resolving =
  (...addresses: string[]): Lookup =>
  (_name, _options, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );

function resolve(lookup: ReturnType<typeof guardedLookup>, all: boolean): Promise<unknown> {
  return new Promise((done, fail) => {
    lookup("house.example", { all }, (error, address) => (error === null ? done(address) : fail(error)));
  });
}

describe("an address", () => {
  test.each([
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "[::1]",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "::ffff:0:127.0.0.1",
    "::ffff:7f00:1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2002:7f00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "fe80::1%br-lan.100",
    "[fe80::1%25eth0]",
    "fec0::1",
    "ff02::1",
    "4000::1",
    "8.8",
    "010.8.8.8",
    "0x8.8.8.8",
    "134744072",
    "8.8.8.8.",
    "not an address",
    "",
  ])("such as %s is not public", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.each([
    "1.1.1.1",
    "8.8.8.8",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.255.255",
    "172.32.0.1",
    "223.255.255.255",
    "2606:4700::1111",
    "[2a00:1450:4001::200e]",
  ])("such as %s is public", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });
});

describe("a URL", () => {
  test.each([
    "http://0x7f.1/",
    "http://017700000001/",
    "http://127.1/",
    "http://2130706433/",
    "http://①②⑦.⓪.⓪.①/",
    "https://127.0.0.1./",
  ])("is checked in the form that the parser gives it: %s", (text) => {
    expect(refuseUrl(new URL(text.replace("http:", "https:")), false)).toMatch(/127\.0\.0\.1 is not a public address/);
  });

  test("may be https on 443 to a name or a public address, and nothing else", () => {
    expect(refuseUrl(new URL("https://example.com:443/x"), false)).toBeNull();
    expect(refuseUrl(new URL("https://8.8.8.8/"), false)).toBeNull();
    expect(refuseUrl(new URL("https://[2606:4700::1111]/"), false)).toBeNull();
    expect(refuseUrl(new URL("http://example.com/"), false)).toMatch(/expected https/);
    expect(refuseUrl(new URL("https://example.com:22/"), false)).toMatch(/port 22 is refused/);
    expect(refuseUrl(new URL("ftp://example.com/"), true)).toMatch(/expected https/);
  });

  test("of a private house may be http, any port and any address", () => {
    expect(refuseUrl(new URL("http://127.0.0.1:4010/"), true)).toBeNull();
    expect(refuseUrl(new URL("http://[fe80::1]:80/"), true)).toBeNull();
  });
});

describe("[API7] a name", () => {
  test("that resolves to public addresses is connected to exactly these", async () => {
    const lookup = guardedLookup(resolving("8.8.8.8", "2606:4700::1111"));
    expect(await resolve(lookup, true)).toEqual([
      { address: "8.8.8.8", family: 4 },
      { address: "2606:4700::1111", family: 6 },
    ]);
    expect(await resolve(lookup, false)).toBe("8.8.8.8");
  });

  test("with one private address among public ones is refused", async () => {
    const lookup = guardedLookup(resolving("8.8.8.8", "::ffff:10.0.0.1"));
    await expect(resolve(lookup, true)).rejects.toThrow(RefusedAddressError);
    await expect(resolve(lookup, false)).rejects.toThrow("house.example resolves to ::ffff:10.0.0.1");
  });

  test("without an address is refused", async () => {
    await expect(resolve(guardedLookup(resolving()), true)).rejects.toThrow("house.example has no address");
  });

  test("that changes its addresses between two connections is checked each time", async () => {
    const addresses = ["8.8.8.8", "127.0.0.1"];
    const lookup = guardedLookup((...call) => resolving(addresses.shift() ?? "")(...call));
    expect(await resolve(lookup, false)).toBe("8.8.8.8");
    await expect(resolve(lookup, false)).rejects.toThrow("127.0.0.1, which is not a public address");
  });
});
