import { Command } from "commander";
import { listAudits, type ListedAudit } from "../../forecasts/readings/audit-store.ts";
import { EVIDENCE_PER_TABLE } from "../../forecasts/readings/reading-facts.ts";
import { examples, tableName, wholeNumber } from "../arguments.ts";
import { paint, print, printJson, printTable, shortTime } from "../output.ts";
import { withDatabase } from "../session.ts";
import { sparkline } from "./sparkline.ts";
import { findTableByName } from "../table-name.ts";

/** A week of hours. */
const HOURS_SHOWN = 168;

/** `roundhouse audit`: what each table's rounds prove about its house, and how the evidence grew. */
export function auditCommand(): Command {
  return new Command("audit")
    .description("the evidence per house: declared edge, proofs, missing rounds, hour by hour")
    .option("--table <house/game/market>", "one table instead of all", tableName)
    .option("--hours <n>", "this many of the newest hours with rounds", wholeNumber(1, 100_000), HOURS_SHOWN)
    .option("--json", "print a JSON array", false)
    .addHelpText("after", examples("audit", "audit --table bustabit/crash/global", "audit --json"))
    .action(({ table: name, hours, json }: { table?: string; hours: number; json: boolean }) =>
      withDatabase(async ({ sql }) => {
        const table = name === undefined ? undefined : await findTableByName(sql, name);
        const audits = await listAudits(sql, { tableId: table?.id, hours });
        await (json ? printJson(audits.map(auditJson)) : showAudits(audits, { withHours: table !== undefined }));
      }),
    );
}

function auditJson(audit: ListedAudit) {
  const newest = audit.hours.at(-1);
  return {
    table: audit.table,
    simulated: audit.simulated,
    tables: audit.tables,
    rounds: audit.rounds,
    edge: {
      declared: audit.edgePpm === null ? null : audit.edgePpm / 1e6,
      tested_rounds: audit.tested,
      ln_e: audit.edgePpm === null || newest === undefined ? null : nats(newest.lnE),
      ln_e_max: audit.edgePpm === null || newest === undefined ? null : nats(newest.lnEMax),
      rejected: audit.edgePpm === null ? null : audit.rejectedHour !== null,
      rejected_hour: audit.rejectedHour,
    },
    proofs: {
      verified: audit.proven,
      share: audit.rounds === 0 ? null : audit.proven / audit.rounds,
      failed: audit.proofsFailed,
    },
    missing: audit.missing,
    gaps: audit.gaps,
    conflicts: audit.conflicts,
    hours: audit.hours.map(({ hour, lnE, lnEMax, tested }) => ({
      hour,
      ln_e: nats(lnE),
      ln_e_max: nats(lnEMax),
      tested_rounds: tested,
    })),
  };
}

async function showAudits(audits: readonly ListedAudit[], { withHours }: { withHours: boolean }): Promise<void> {
  await printTable(
    [
      "table",
      "rounds",
      "edge",
      "evidence",
      "most",
      "verdict",
      "proven",
      "failed",
      "missing",
      "conflicts",
      "ln E by hour",
    ],
    audits.map((audit) => {
      const newest = audit.hours.at(-1);
      const isTested = audit.edgePpm !== null && newest !== undefined;
      return [
        audit.simulated ? `${audit.table} (simulated)` : audit.table,
        audit.rounds,
        audit.edgePpm === null ? null : `${audit.edgePpm / 10_000} %`,
        isTested ? times(newest.lnE) : null,
        isTested ? times(newest.lnEMax) : null,
        verdictOf(audit),
        audit.rounds === 0 ? null : `${((100 * audit.proven) / audit.rounds).toFixed(1)} %`,
        audit.proofsFailed,
        audit.missing ?? (audit.gaps === 0 ? 0 : `${audit.gaps} gaps`),
        audit.conflicts,
        isTested ? sparkline(audit.hours.map(({ lnE }) => nats(lnE))) : null,
      ];
    }),
  );
  for (const audit of withHours ? audits : []) await showHours(audit);
  const tables = audits[0]?.tables ?? 0;
  await print(
    "\nevidence is against the declared edge: around 1 or less where it is kept. Up to one table in 20 reaches 20 by chance, " +
      `so with ${tables} ${tables === 1 ? "table" : "tables"} the edge counts as not kept from ${EVIDENCE_PER_TABLE * Math.max(tables, 1)} on.`,
  );
}

async function showHours({ edgePpm, hours, rejectedHour }: ListedAudit): Promise<void> {
  if (edgePpm === null || hours.length === 0) return;
  await print("");
  await printTable(
    ["hour", "tested", "ln E", "most"],
    hours.map(({ hour, tested, lnE, lnEMax }) => [
      shortTime(hour),
      tested,
      nats(lnE).toFixed(3),
      rejectedHour !== null && hour >= rejectedHour ? paint.red(nats(lnEMax).toFixed(3)) : nats(lnEMax).toFixed(3),
    ]),
  );
}

function verdictOf({ edgePpm, rejectedHour, tested, hours }: ListedAudit): string {
  if (edgePpm === null) return "no edge declared";
  if (tested === 0) return "no rounds yet";
  if (rejectedHour !== null) return paint.red(`not kept, since ${shortTime(rejectedHour)}`);
  const isDoubted = nats(hours.at(-1)?.lnEMax ?? 0n) >= Math.log(EVIDENCE_PER_TABLE);
  return isDoubted ? paint.yellow("evidence against") : paint.green("fits");
}

function nats(micro: bigint): number {
  return Number(micro) / 1e6;
}

/** Formats evidence: as a power of ten when the number is too large to read. */
function times(lnE: bigint): string {
  const decades = nats(lnE) / Math.LN10;
  if (decades >= 6) return `10^${Math.floor(decades)}`;
  return decades < -2 ? "below 0.01" : Math.exp(nats(lnE)).toPrecision(2);
}
