import { Command } from "commander";
import type { Sql } from "../../db/client.ts";
import { UsageError } from "../../errors.ts";
import { createProver } from "../../houses/fairness/prove.ts";
import type { TableSettings } from "../../houses/settings/settings.ts";
import { findSeq, type PlaceRange } from "../../rounds/proofs/proof-range-store.ts";
import { proveStored, type ProvenRange } from "../../rounds/proofs/prove-stored.ts";
import { numberOf } from "../../rounds/round.ts";
import { examples, someText, tableName } from "../arguments.ts";
import { withProgress } from "../long-work.ts";
import { print, printJson, say } from "../output.ts";
import { withDatabase } from "../session.ts";
import { findTableByName } from "../table-name.ts";
import { findTableSettings } from "../houses/table-settings.ts";

interface VerifyRoundsArguments {
  table: string;
  from?: string;
  to?: string;
  json: boolean;
}

/** More than any number or seq. */
const NO_END = 10n ** 18n;

/** `roundhouse verify rounds`: proves a table's stored rounds again from their hashes. Exit code 1 if one fails. */
export function verifyRoundsCommand(): Command {
  return new Command("rounds")
    .description(
      "verify stored rounds again: multipliers from their hashes, hashes up to the published end of the chain",
    )
    .requiredOption("--table <house/game/market>", "the table", tableName)
    .option("--from <round-id>", "the first round; the table's first without it", someText)
    .option("--to <round-id>", "the last round; the table's last without it", someText)
    .option("--json", "print one JSON object", false)
    .addHelpText(
      "after",
      examples(
        "verify rounds --table bustabit/crash/global",
        "verify rounds --table bustabit/crash/global --from 5000000 --to 5100000 --json",
      ),
    )
    .action((given: VerifyRoundsArguments) => withDatabase(({ sql }) => verifyRounds(sql, given), { patient: true }));
}

async function verifyRounds(sql: Sql, given: VerifyRoundsArguments): Promise<void> {
  const table = await findTableByName(sql, given.table);
  const settings = await findTableSettings(sql, table.name);
  const { fairness, round_ids: roundIds } = settings;
  if (fairness === undefined) {
    throw new UsageError(`${table.name} has no \`fairness\` in the houses file, so its rounds cannot be proven`);
  }
  const range = await rangeOf(sql, table.id, roundIds, given);
  say(`proving ${table.name}, first back to the published end of its chain`);
  const interrupted = "interrupted; nothing was changed, and a new start begins from the first round";
  const result = await withProgress({ title: `proving ${table.name}`, interrupted }, (steps) =>
    proveStored(sql, createProver(), { table, roundIds, fairness, range }, steps),
  );
  await (given.json ? printJson({ table: table.name, ...result }) : print(sentence(table.name, result)));
  if (!result.ok) process.exitCode = 1;
}

async function rangeOf(
  sql: Sql,
  tableId: number,
  roundIds: TableSettings["round_ids"],
  { from, to }: VerifyRoundsArguments,
): Promise<PlaceRange> {
  const by = roundIds === "consecutive" ? "number" : "seq";
  const place = async (option: string, id: string | undefined, otherwise: bigint): Promise<bigint> => {
    if (id === undefined) return otherwise;
    const found = by === "number" ? numberOf(id) : await findSeq(sql, tableId, id);
    if (found !== null) return found;
    const expected = by === "number" ? "a whole number" : "the id of a round that is stored";
    throw new UsageError(`expected ${expected} as ${option}, found ${JSON.stringify(id)}`);
  };
  const range = { by, from: await place("--from", from, 0n), to: await place("--to", to, NO_END) } as const;
  if (range.from > range.to) throw new UsageError(`expected --to at or after --from, found ${from} to ${to}`);
  return range;
}

function sentence(table: string, { checked, chains, failures, first_failure: failure, complete }: ProvenRange): string {
  const proven = chains.map(
    ({ chain, rounds, first, last }) =>
      `\n  ${chain}: ${rounds} rounds lead back to its published end${first === null ? "" : `, ${first} to ${last} of it`}`,
  );
  const apart = `${checked.without_hash} have no hash, ${checked.without_era} are of no declared era`;
  const counted = `${table}: ${checked.rounds} rounds, ${checked.proven} proven; ${apart}${proven.join("")}`;
  if (failure === null) return counted;
  const rest = complete ? "" : "; the rest was not looked at";
  return (
    `${counted}\n${failures} fail${failures === 1 ? "s" : ""}${rest}; the first is round ${failure.id} (${failure.kind})\n` +
    `  expected ${failure.expected}\n  found    ${failure.found}`
  );
}
