import { describe, expect, it } from "vitest";
import { loadSettings } from "../../src/config/environment.ts";
import * as amount from "../../src/topups/usdt/amount.ts";
import * as onChain from "../../src/topups/usdt/endpoints/on-chain.ts";
import * as ranges from "../../src/topups/usdt/endpoints/ranges.ts";
import { CHAINS } from "../../src/config/usdt-chains.ts";
import { tokenProblem } from "../../src/topups/usdt/endpoints/endpoint.ts";
import { usdtOnChain } from "../../src/topups/usdt/method.ts";
import { usdtOf } from "../../src/config/usdt.ts";
import { XPUB } from "../support/chain.ts";
import { listExamples, runExample } from "../support/examples.ts";

describe("how USDT is counted and read", () => {
  it.each(
    Object.entries({ amount, "endpoints/ranges": ranges, "endpoints/on-chain": onChain }).flatMap(([file, module]) =>
      listExamples(`src/topups/usdt/${file}.ts`).map((example) => ({ ...example, module })),
    ),
  )("the example of $title holds", (example) => {
    const claims = runExample(example, { ...example.module });
    expect(claims.length).toBeGreaterThan(0);
    for (const { line, actual, expected } of claims) expect(actual, line).toEqual(expected);
  });
});

describe("the settings of USDT", () => {
  const both = { USDT_XPUB: XPUB, USDT_RPC_URLS: "https://one.example/key, https://two.example" };

  it("accept no USDT if none is configured, and Ethereum if a key and endpoints are", () => {
    expect(usdtOf(loadSettings({}))).toBeNull();
    expect(usdtOnChain.isConfigured(loadSettings({}))).toBe(false);
    expect(usdtOf(loadSettings(both))).toMatchObject({
      chain: { id: 1n, decimals: 6, confirmations: 12 },
      rpcUrls: ["https://one.example/key", "https://two.example"],
      minMicros: 5_000_000n,
    });
    expect(usdtOnChain.about(loadSettings(both))).toMatchObject({
      time: "After 12 blocks of Ethereum (ERC-20), by itself, at any hour.",
    });
    const bsc = usdtOf(loadSettings({ ...both, USDT_CHAIN: "bsc", USDT_CONFIRMATIONS: "200", USDT_MIN: "2.5" }));
    expect(bsc).toMatchObject({
      chain: { id: 56n, decimals: 18, confirmations: 200, rescan: 400 },
      minMicros: 2_500_000n,
    });
  });

  it("know tokens whose addresses have the right checksum", () => {
    for (const { token } of Object.values(CHAINS)) expect(tokenProblem(token)).toBeNull();
    expect(tokenProblem(CHAINS.ethereum.token.replace("dAC", "dac"))).toMatch(/checksum/);
    expect(tokenProblem(CHAINS.ethereum.token.toLowerCase())).toBeNull();
  });

  const PRIVATE =
    "xprv9s21ZrQH143K3GJpoapnV8SFfukcVBSfeCficPSGfubmSFDxo1kuHnLisriDvSnRRuL2Qrg5ggqHKNVpxR86QEC8w35uxmGoggxtQTPvfUu";
  it.each([
    [
      "a private key",
      { ...both, USDT_XPUB: PRIVATE },
      "USDT_XPUB: expected an extended public key (xpub…), found a private one",
    ],
    [
      "a key with a mistyped character",
      { ...both, USDT_XPUB: XPUB.replace("9g", "9h").replace("Nc", "Nd") },
      "found a mistyped character",
    ],
    ["a key without endpoints", { USDT_XPUB: XPUB }, "USDT_XPUB: expected USDT_RPC_URLS too"],
    ["endpoints without a key", { USDT_RPC_URLS: both.USDT_RPC_URLS }, "USDT_RPC_URLS: expected USDT_XPUB too"],
    [
      "the same endpoint twice",
      { ...both, USDT_RPC_URLS: "https://a.example,https://a.example" },
      "one or two different URLs",
    ],
    [
      "three endpoints",
      { ...both, USDT_RPC_URLS: "https://a.example,https://b.example,https://c.example" },
      "one or two different URLs",
    ],
    ["a chain that is not known", { ...both, USDT_CHAIN: "tron" }, "USDT_CHAIN: "],
    [
      "a chain of one's own without its token",
      { ...both, USDT_CHAIN: "custom", USDT_CHAIN_ID: "5" },
      "USDT_TOKEN: expected it with USDT_CHAIN=custom",
    ],
    ["another token on a known chain", { ...both, USDT_TOKEN: CHAINS.bsc.token }, "that of ethereum is known"],
    ["a minimum of nothing", { ...both, USDT_MIN: "0" }, "USDT_MIN: expected an amount in USD above zero"],
  ])("%s stops the start, and no secret is repeated", (_, variables, told) => {
    expect(() => loadSettings(variables)).toThrow(told);
    expect(() => loadSettings(variables)).not.toThrow(PRIVATE);
  });

  it("want the key of an account or of its addresses, not of a wallet", () => {
    const master =
      "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8";
    expect(() => loadSettings({ ...both, USDT_XPUB: master })).toThrow(/found depth 0/);
  });
});
