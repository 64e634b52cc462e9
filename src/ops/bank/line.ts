import { z } from "zod";
import type { Queryable } from "../../db/client.ts";
import { thousands, usd } from "../../money.ts";
import { amountText, parseRate, rateText, toMicros } from "../../topups/bank/statements/amount.ts";
import { proposeTransfers } from "../../topups/bank/expected-store.ts";
import { inFours } from "../../config/iban.ts";
import type { BankLine } from "../../topups/bank/line.ts";
import { isPending } from "../../topups/bank/decision-store.ts";
import { findLine, listTwins } from "../../topups/bank/line-store.ts";
import { listMatches } from "../../topups/bank/match-store.ts";
import { listReturns } from "../../topups/bank/return-store.ts";
import { findTarget, type Target } from "../../topups/bank/target-store.ts";
import { opsPage } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";

const querySchema = z.object({
  /** The account or reference to preview a match with. */
  to: z.string().trim().max(300).default(""),
  rate: z.string().trim().max(40).default(""),
});

/** One line: its facts, the top-ups that it may belong to, and the decisions on it. */
export const bankLinePage = opsPage({
  path: "/bank/lines/:id",
  query: querySchema,
  async show({ sql, settings }, { visitor, params, query }) {
    const id = idOf(params["id"]);
    const line = id === null ? null : await findLine(sql, id);
    if (line === null) return null;
    const isOpen = line.state === "new" || line.state === "suspense";
    const [proposals, matches, returns, twins, preview] = await Promise.all([
      isOpen ? proposeTransfers(sql, line.remittance) : [],
      listMatches(sql, line.id),
      listReturns(sql, line.id),
      isOpen || line.state === "matched" ? listTwins(sql, line) : [],
      isOpen && query.to !== "" ? previewOf(sql, line, query) : null,
    ]);
    const data = {
      line,
      isOpen,
      proposals,
      matches,
      returns,
      match: matches.find(isPending) ?? null,
      openReturn: returns.find(isPending) ?? null,
      twins,
      preview,
      query,
      isOnePerson: settings.BANK_ONE_PERSON,
      mayAct: visitor.role === "operator" || visitor.role === "admin",
      ownId: visitor.operatorId,
      amountText: (minor: bigint, currency: string) => thousands(amountText(minor, currency)),
      inFours,
      rateText,
      usd,
    };
    const crumbs = [{ label: "Bank transfers", href: "/ops/bank" }];
    return { template: "bank/line", title: `${line.bank} ${line.bankRef}`, data, crumbs };
  },
});

/** What a match would credit, or the problem with what was typed. */
type Preview = { ok: true; target: Target; micros: bigint; rate: string } | { ok: false; problem: string };

async function previewOf(
  sql: Queryable,
  line: BankLine,
  { to, rate }: z.infer<typeof querySchema>,
): Promise<Preview | null> {
  const found = await findTarget(sql, to);
  if (!found.ok) return found;
  if (line.rateE8 === null && line.currency !== "USD" && rate === "") return null; // the next thing to type
  const read = line.rateE8 === null ? parseRate(rate, line.currency) : ({ ok: true, value: line.rateE8 } as const);
  if (!read.ok) return read;
  const micros =
    line.suspenseMicros ?? toMicros({ minor: line.amountMinor, currency: line.currency, rateE8: read.value });
  return { ok: true, target: found.target, micros, rate: rateText(read.value) };
}
