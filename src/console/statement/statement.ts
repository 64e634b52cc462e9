import { z } from "zod";
import { csvText } from "../../csv.ts";
import { PageError } from "../../frame/errors.ts";
import { timeText } from "../../frame/text/format.ts";
import { usd } from "../../money.ts";
import { listStatement, type StatementEntry } from "../../ledger/statement-store.ts";
import { walletMicros } from "../../ledger/store.ts";
import { statementText } from "../../ledger/statement-text.ts";
import { consolePage } from "../contract.ts";

const PER_PAGE = 50;
/** One file holds at most so many entries: more are asked for year by year. */
const MOST_IN_FILE = 50_000;

const query = z.object({
  before: z
    .string()
    .regex(/^\d{1,18}$/, "expected the id of an entry, as a link of this list has it")
    .transform(BigInt)
    .optional(),
});

/** Everything that moved money on the account's balance, newest first. */
const statementPage = consolePage({
  path: "/statement",
  nav: { label: "Statement", order: 33, group: "Billing" },
  query,
  async show({ sql }, { holder: { accountId }, query: { before = null } }) {
    const [found, balance] = await Promise.all([
      listStatement(sql, accountId, { before, limit: PER_PAGE + 1 }),
      walletMicros(sql, accountId),
    ]);
    const entries = found.slice(0, PER_PAGE).map((entry) => ({
      ...entry,
      words: statementText(entry),
    }));
    const data = {
      entries,
      balance,
      isNewest: before === null,
      older: found.length > PER_PAGE ? (entries.at(-1)?.id ?? null) : null,
    };
    const lead =
      "Everything that changed your balance, newest first. Entries are never changed; a mistake is corrected by an entry of its own.";
    return {
      template: "statement/statement",
      title: "Statement",
      data,
      header: {
        lead,
        more: entries.length === 0 ? [] : [{ label: "Download as CSV", href: "/console/statement/statement.csv" }],
      },
    };
  },
});

const whichYear = z.object({ year: z.coerce.number().int().min(2000).max(9999).optional() });

/** The statement as one file; refused where it is more than a file holds, so that none is missing unseen. */
export const statementFile = (mostEntries: number) =>
  consolePage({
    path: "/statement/statement.csv",
    query: whichYear,
    async show({ sql }, { holder: { accountId }, query: { year = null } }) {
      const entries = await listStatement(sql, accountId, { year, limit: mostEntries + 1 });
      if (entries.length > mostEntries) {
        throw new PageError(
          422,
          `expected at most ${mostEntries} entries in a file, found more; add ?year=2026 for one year`,
        );
      }
      const name = year === null ? "statement.csv" : `statement-${year}.csv`;
      return { file: name, type: "text/csv", text: csvText([COLUMNS, ...entries.map((entry) => cellsOf(entry))]) };
    },
  });

/** What moved money, to look at and to keep. */
export const statementPages = [statementPage, statementFile(MOST_IN_FILE)];

const COLUMNS = ["entry", "time_utc", "kind", "what", "reference", "amount_usd", "balance_after_usd"];

function cellsOf(entry: StatementEntry): string[] {
  const { id, at, kind, meta, micros, balanceAfter } = entry;
  const [amount, after] = [usd(micros), usd(balanceAfter)];
  return [String(id), timeText(at), kind, statementText(entry), meta["reference"] ?? "", amount, after];
}
