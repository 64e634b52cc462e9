/** The false responses of a chain endpoint. */
export const CHAIN_LIES = ["duplicate", "huge log index", "missing", "tenfold"] as const;
export type ChainLie = (typeof CHAIN_LIES)[number];

type Log = Record<string, unknown> & { data: string };

/** A log index above every 32-bit integer. */
const HUGE_LOG_INDEX = "0xffffffff";

/** Change a result of the real node. A deposit is found by the logs of its transfer, and credited by its receipt. */
export const LIES: Record<ChainLie, (method: string, result: unknown) => unknown> = {
  duplicate: (method, result) => (method === "eth_getLogs" ? [result, result].flat() : result),
  "huge log index": (method, result) =>
    method === "eth_getLogs" ? (result as Log[]).map((log) => ({ ...log, logIndex: HUGE_LOG_INDEX })) : result,
  missing(method, result) {
    if (method === "eth_getLogs") return [];
    return method === "eth_getTransactionReceipt" ? null : result;
  },
  tenfold(method, result) {
    if (method === "eth_getLogs") return (result as Log[]).map(multiplied);
    if (method !== "eth_getTransactionReceipt" || result === null) return result;
    const receipt = result as { logs: Log[] };
    return { ...receipt, logs: receipt.logs.map(multiplied) };
  },
};

function multiplied(log: Log): Log {
  return { ...log, data: `0x${(BigInt(log.data) * 10n).toString(16).padStart(64, "0")}` };
}
