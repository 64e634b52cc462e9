import type { StatementEntry } from "./statement-store.ts";

const WAYS: Record<string, string> = {
  bank: "bank transfer",
  usdt: "USDT on-chain",
  "binance-pay": "Binance Pay",
  demo: "demo payment",
};
const PURCHASES: Record<string, string> = {
  buy: "Bought",
  renew: "Renewed",
  upgrade: "Upgraded to",
  downgrade: "Bought for later:",
};

/**
 * The description of a wallet entry for its holder.
 *
 * @example
 * statementText({ kind: "topup", meta: { method: "bank", reference: "RF18" }, reverses: null }); // => "Top-up by bank transfer"
 * statementText({ kind: "placement", meta: {}, reverses: null }); // => "Top-up that was on hold"
 * statementText({ kind: "purchase", meta: { plan: "Pro", purchase: "renew" }, reverses: null }); // => "Renewed Pro"
 * statementText({ kind: "reversal", meta: { reason: "credited twice" }, reverses: 12n }); // => "Correction of entry 12: credited twice"
 */
export function statementText({ kind, meta, reverses }: Pick<StatementEntry, "kind" | "meta" | "reverses">): string {
  const way = WAYS[meta["method"] ?? ""];
  const by = way === undefined ? "" : ` by ${way}`;
  if (kind === "topup") return `Top-up${by}`;
  if (kind === "placement") return `Top-up${by} that was on hold`;
  if (kind === "purchase") return `${PURCHASES[meta["purchase"] ?? ""] ?? "Bought"} ${meta["plan"] ?? "a plan"}`;
  if (kind === "suspense") return "Held until it is known whose it is"; // never on a wallet; operators read it
  const why = meta["reason"];
  return `Correction of entry ${reverses ?? "?"}${why === undefined ? "" : `: ${why}`}`;
}
