/** A chain with USDT. The token is identified by its contract, never by a name or a symbol. */
export interface Chain {
  /** Its id by EIP-155. */
  id: bigint;
  /** The name that senders know. */
  name: string;
  /** The token's contract. */
  token: `0x${string}`;
  /** How many decimal places the token's amounts have. */
  decimals: number;
  /** Confirmations before a deposit is credited, including its own block. */
  confirmations: number;
  /** The newest blocks that every poll reads again, since they may still be replaced. */
  rescan: number;
  /** The time between blocks. */
  blockMs: number;
  /** The transaction URL of a block explorer, without the hash; null if there is none. */
  explorer: string | null;
}

/**
 * The built-in chains. Contracts are Tether's own, on BNB Smart Chain Binance's; USDT has 18 decimals there and 6 on
 * all others. Tron is not supported: its addresses and signatures differ.
 */
export const CHAINS = {
  ethereum: {
    id: 1n,
    name: "Ethereum (ERC-20)",
    token: "0xdAC17F958D2ee523a2206206994597C13D831ec7",
    decimals: 6,
    confirmations: 12,
    rescan: 128,
    blockMs: 12_000,
    explorer: "https://etherscan.io/tx/",
  },
  polygon: {
    id: 137n,
    name: "Polygon PoS",
    token: "0xc2132D05D31c914a87C6611C10748AEb04B58e8F",
    decimals: 6,
    confirmations: 128,
    rescan: 512,
    blockMs: 2_000,
    explorer: "https://polygonscan.com/tx/",
  },
  arbitrum: {
    id: 42_161n,
    name: "Arbitrum One",
    token: "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9",
    decimals: 6,
    confirmations: 240, // a minute: its blocks come four times a second
    rescan: 960,
    blockMs: 250,
    explorer: "https://arbiscan.io/tx/",
  },
  bsc: {
    id: 56n,
    name: "BNB Smart Chain (BEP-20)",
    token: "0x55d398326f99059fF775485246999027B3197955",
    decimals: 18,
    confirmations: 30,
    rescan: 256,
    blockMs: 450, // BEP-619
    explorer: "https://bscscan.com/tx/",
  },
} as const satisfies Record<string, Chain>;

/** The name of a built-in chain. */
export type ChainName = keyof typeof CHAINS;

/** The defaults of a custom chain, usually a test chain. */
export const CUSTOM = { confirmations: 12, rescan: 128, blockMs: 1_000, explorer: null } as const;

/** Returns a chain's name and explorer by its id, even if it is not configured any more. */
export function chainOfId(id: bigint): Pick<Chain, "name" | "explorer"> {
  return Object.values(CHAINS).find((chain) => chain.id === id) ?? { name: `chain ${id}`, explorer: null };
}
