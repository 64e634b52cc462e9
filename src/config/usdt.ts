import { z } from "zod";
import { parseUsd } from "../money.ts";
import { CHAINS, type Chain, type ChainName, CUSTOM } from "./usdt-chains.ts";
import { commaSeparated, isHttpUrl, oneOf, wholeNumber } from "./values.ts";
import { xpubProblem } from "./xpub.ts";

const names = Object.keys(CHAINS) as [ChainName, ...ChainName[]];
const MOST_ENDPOINTS = 2;

const xpub = z
  .string()
  .check((asked) => {
    const message = xpubProblem(asked.value);
    if (message !== null) asked.issues.push({ code: "custom", message, input: undefined });
  })
  .optional();

const endpoints = commaSeparated.refine(
  (list) => list.length <= MOST_ENDPOINTS && list.every(isHttpUrl) && new Set(list).size === list.length,
  {
    error: "expected one or two different URLs that begin with https:// or http://, with a comma between",
  },
);

const least = z
  .string()
  .default("5")
  .transform((text, asked) => {
    const micros = parseUsd(text);
    if (micros !== null && micros > 0n) return micros;
    asked.issues.push({
      code: "custom",
      message: "expected an amount in USD above zero, such as 5 or 2.50",
      input: undefined,
    });
    return z.NEVER;
  });

/** The variables of USDT deposits. */
export const usdtVariables = {
  USDT_XPUB: xpub,
  USDT_CHAIN: oneOf([...names, "custom"]).default("ethereum"),
  USDT_CHAIN_ID: wholeNumber(1, Number.MAX_SAFE_INTEGER).optional(),
  USDT_TOKEN: z
    .string()
    .regex(/^0x[0-9a-fA-F]{40}$/, "expected the address of a contract: 0x and 40 hex digits")
    .optional(),
  USDT_DECIMALS: wholeNumber(0, 36).optional(),
  USDT_RPC_URLS: endpoints,
  USDT_CONFIRMATIONS: wholeNumber(1, 100_000).optional(),
  USDT_MIN: least,
} as const;

const variables = z.object(usdtVariables);
/** The parsed variables. */
export type UsdtSettings = z.infer<typeof variables>;

/** The configuration of USDT. */
export interface Usdt {
  chain: Chain;
  xpub: string;
  /** One or two endpoints; with two, both must agree before anything is credited. */
  rpcUrls: readonly string[];
  /** The smallest deposit that is credited individually, in micro-units. */
  minMicros: bigint;
}

/** Returns the problems of the variables of a chain together, each with the variable to change. */
export function usdtProblems(given: UsdtSettings): { path: string; message: string }[] {
  const problems: { path: string; message: string }[] = [];
  for (const name of ["USDT_CHAIN_ID", "USDT_TOKEN", "USDT_DECIMALS"] as const) {
    if (given.USDT_CHAIN === "custom" && given[name] === undefined) {
      const message = "expected it with USDT_CHAIN=custom, found it not set; set it, or choose a known chain";
      problems.push({ path: name, message });
    }
    if (given.USDT_CHAIN !== "custom" && given[name] !== undefined) {
      const message = `expected it only with USDT_CHAIN=custom, found it with ${given.USDT_CHAIN}; unset it, since that of ${given.USDT_CHAIN} is known`;
      problems.push({ path: name, message });
    }
  }
  return problems;
}

/** Returns the USDT configuration; null if it is not configured. */
export function usdtOf(given: UsdtSettings): Usdt | null {
  if (given.USDT_XPUB === undefined || given.USDT_RPC_URLS.length === 0) return null;
  const chain = chainOf(given);
  const confirmations = given.USDT_CONFIRMATIONS ?? chain.confirmations;
  return {
    // a block that is not confirmed yet must still be read again
    chain: { ...chain, confirmations, rescan: Math.max(chain.rescan, 2 * confirmations) },
    xpub: given.USDT_XPUB,
    rpcUrls: given.USDT_RPC_URLS,
    minMicros: given.USDT_MIN,
  };
}

function chainOf(given: UsdtSettings): Chain {
  if (given.USDT_CHAIN !== "custom") return CHAINS[given.USDT_CHAIN];
  const { USDT_CHAIN_ID: id, USDT_TOKEN: token, USDT_DECIMALS: decimals } = given;
  if (id === undefined || token === undefined || decimals === undefined) {
    throw new Error("expected a chain of one's own with its id, its token and the token's decimals");
  }
  return { ...CUSTOM, id: BigInt(id), name: `chain ${id}`, token: token as `0x${string}`, decimals };
}
