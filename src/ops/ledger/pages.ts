import { z } from "zod";
import { findTransaction, listSideSums, listTransactions, listWallets } from "../../ledger/list-store.ts";
import { sumMicros, thousands, usd } from "../../money.ts";
import type { LedgerSide, Posting } from "../../ledger/posting.ts";
import { listProposals, whyNotReversible } from "../../ledger/reversal-store.ts";
import { minus } from "../../frame/text/format.ts";
import { opsPage } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";
import { PER_PAGE } from "../payloads/listing.ts";

const KINDS = ["topup", "purchase", "suspense", "placement", "reversal"] as const satisfies Posting["kind"][];
/** The ledger shows amounts exactly, not to cents. */
const exactUsd = (micros: bigint) => minus(thousands(usd(micros)));
/** The kind of a transaction in words. */
const kindText = (kind: string) => (kind === "topup" ? "top-up" : kind);
const crumbs = [{ label: "Ledger", href: "/ops/ledger" }];

const id = z
  .string()
  .trim()
  .regex(/^\d{0,18}$/, "expected an id")
  .default("");
const query = z.object({ kind: z.enum(["", ...KINDS]).default(""), owner: id, before: id });

/** What all sides hold, what waits for a second person, and what moved last. */
export const ledgerPage = opsPage({
  path: "/ledger",
  nav: { label: "Ledger", order: 33, group: "Money" },
  query,
  async show({ sql }, { query: { kind, owner, before } }) {
    const [sums, proposals, found] = await Promise.all([
      listSideSums(sql),
      listProposals(sql, "open"),
      listTransactions(sql, {
        kind: kind === "" ? null : kind,
        owner: idOf(owner),
        before: idOf(before),
        limit: PER_PAGE + 1,
      }),
    ]);
    const rows = found.slice(0, PER_PAGE);
    const data = {
      sums,
      total: sumMicros(sums.map(({ micros }) => micros)),
      proposals,
      rows,
      kinds: KINDS,
      kindText,
      query: { kind, owner, before },
      next: found.length > PER_PAGE ? (rows.at(-1)?.id ?? null) : null,
      usd: exactUsd,
      sideLabel,
    };
    return { template: "ledger/ledger", title: "Ledger", data };
  },
});

const paged = z.object({ page: z.coerce.number().int().min(1).max(100_000).default(1) });

/** Wallets, the fullest first. */
export const walletsPage = opsPage({
  path: "/ledger/wallets",
  query: paged,
  async show({ sql }, { query: { page: wanted } }) {
    const { rows, total, page } = await listWallets(sql, { page: wanted, perPage: PER_PAGE });
    const data = { rows, paging: { page, perPage: PER_PAGE, total } };
    return { template: "ledger/wallets", title: "Wallets", data, crumbs };
  },
});

/** One transaction: its entries, what is known of it, and taking it back. */
export const transactionPage = opsPage({
  path: "/ledger/transactions/:id",
  async show({ sql }, { visitor, params }) {
    const wanted = idOf(params["id"]);
    const one = wanted === null ? null : await findTransaction(sql, wanted);
    if (one === null) return null;
    const proposals = await listProposals(sql, one.id);
    const isOpen = proposals.some(({ state }) => state === "proposed");
    const data = {
      one,
      proposals,
      mayPropose: !isOpen && one.reversedBy === null,
      whyNot: await whyNotReversible(sql, one.id),
      isOwn: (proposal: { proposedBy: string }) => proposal.proposedBy === visitor.operatorId,
      usd: exactUsd,
      kindText,
      sideLabel,
    };
    return { template: "ledger/transaction", title: `Transaction ${one.id}`, data, crumbs };
  },
});

const LABELS: Record<LedgerSide["kind"], string> = {
  cash_bank: "Cash: bank",
  cash_onchain: "Cash: on-chain",
  cash_payapp: "Cash: payment app",
  cash_demo: "Cash: demo payments",
  wallet: "Wallets",
  revenue: "Revenue",
  suspense: "Suspense",
};

function sideLabel({ kind, owner = null }: { kind: LedgerSide["kind"]; owner?: bigint | string | null }): string {
  return owner === null ? LABELS[kind] : `Wallet of account ${owner}`;
}
