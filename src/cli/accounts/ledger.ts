import { Command } from "commander";
import { checkLedger, type Difference, type LedgerCheck } from "../../ledger/check.ts";
import { examples } from "../arguments.ts";
import { print, printJson } from "../output.ts";
import { withDatabase } from "../session.ts";

/** `roundhouse ledger check`: recomputes every balance from its entries. Exit code 1 if one differs. */
export function ledgerCommand(): Command {
  return new Command("ledger")
    .description("the double-entry ledger of top-ups and purchases")
    .addCommand(checkCommand())
    .addHelpText("after", examples("ledger check", "ledger check --json"));
}

function checkCommand(): Command {
  return new Command("check")
    .description("recompute every balance from its entries, and check every transaction, reversal and request hash")
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples("ledger check", "ledger check --json"))
    .action(({ json }: { json: boolean }) =>
      withDatabase(
        async ({ sql }) => {
          const result = await checkLedger(sql);
          await (json ? printJson(result) : print(sentence(result)));
          if (!result.ok) process.exitCode = 1;
        },
        { patient: true },
      ),
    );
}

function sentence({ ok, checked, sums, suspense, differences, unlisted }: LedgerCheck): string {
  const { accounts, transactions, entries } = checked;
  const counted = `${transactions} transactions with ${entries} entries on ${accounts} accounts`;
  const held = Object.entries(sums).map(([kind, amount]) => `  ${kind.padEnd(13)}${amount.padStart(16)} USD`);
  const waiting = suspense === "0.00" ? [] : [`${suspense} USD in suspense must be assigned to an account`];
  const head = ok
    ? `the ledger is as it should be: ${counted} give every balance, and all balances together are 0`
    : `the ledger is not as its entries say: ${differences.length + unlisted} differences in ${counted}`;
  const more = unlisted === 0 ? [] : [`and ${unlisted} more; restore the ledger from a backup before anything is sold`];
  return [head, ...held, ...waiting, ...differences.map((one) => differenceText(one)), ...more].join("\n");
}

function differenceText({ kind, subject, expected, found }: Difference): string {
  return `${kind}: ${subject}\n  expected ${expected}\n  found    ${found}`;
}
