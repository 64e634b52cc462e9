import { z } from "zod";
import { thousands, usd } from "../../money.ts";
import { amountText } from "../../topups/bank/statements/amount.ts";
import { listExpected } from "../../topups/bank/expected-store.ts";
import { inFours } from "../../config/iban.ts";
import { countLines, listLines } from "../../topups/bank/line-store.ts";
import { hasBank } from "../../topups/bank/method.ts";
import { opsPage } from "../contract.ts";
import { transfersText } from "./imports.ts";
import { idOf } from "../../frame/path-id.ts";
import { PER_PAGE } from "../payloads/listing.ts";

const MOST_EXPECTED_SHOWN = 50;

const querySchema = z.object({
  state: z
    .enum(["", "new", "matched", "suspense", "rejected", "return", "credited", "returned", "reversed"])
    .default(""),
  q: z.string().trim().max(200).default(""),
  /** A statement: its transfers alone. */
  import: z.string().max(18).regex(/^\d*$/, "expected the number of a statement").default(""),
  page: z.coerce.number().int().min(1).max(100_000).default(1),
});

/** Lines of bank statements and what waits for whom, and the transfers that were announced. */
export const bankPage = opsPage({
  path: "/bank",
  nav: { label: "Bank", order: 30, group: "Money" },
  query: querySchema,
  async show({ sql, settings }, { visitor, query }) {
    const { state, q } = query;
    const importId = idOf(query.import);
    const [counts, { rows, total, page }, expected] = await Promise.all([
      countLines(sql),
      listLines(
        sql,
        { state: state === "" ? null : state, text: q, importId },
        { page: query.page, perPage: PER_PAGE },
      ),
      listExpected(sql, MOST_EXPECTED_SHOWN + 1),
    ]);
    const data = {
      isConfigured: hasBank(settings),
      isOnePerson: settings.BANK_ONE_PERSON,
      counts,
      importId,
      transfersText,
      rows,
      total,
      perPage: PER_PAGE,
      query: { ...query, page },
      expected: expected.slice(0, MOST_EXPECTED_SHOWN),
      isMore: expected.length > MOST_EXPECTED_SHOWN,
      amountText: (minor: bigint, currency: string) => thousands(amountText(minor, currency)),
      inFours,
      usd,
    };
    const mayAct = visitor.role === "operator" || visitor.role === "admin";
    const header = mayAct
      ? {
          action: { label: "Import a statement", href: "/ops/bank/import" },
          more: [{ label: "Enter a transfer", href: "/ops/bank/lines/new" }],
        }
      : {};
    return { template: "bank/queue", title: "Bank transfers", data, header };
  },
});
