import { Command, InvalidArgumentError } from "commander";
import { UsageError } from "../../errors.ts";
import { findCalibration, listCalibrations } from "../../calibration/calibration-store.ts";
import { compareCalibrations } from "../../calibration/compare.ts";
import { promoteCalibration, refuseLaterPromotion } from "../../calibration/promote.ts";
import { findNewestPromotion } from "../../calibration/promotion-store.ts";
import type { Sql } from "../../db/client.ts";
import { examples, someText } from "../arguments.ts";
import { announce } from "../announce.ts";
import { appendCommandAudit } from "../audited.ts";
import { LIST_COLUMNS, showComparison, showDetail } from "./calibration-text.ts";
import { comparisonOf, detailOf, summaryOf } from "../../calibration/calibration-view.ts";
import { listCommand, ofTable } from "../list-command.ts";
import { withProgress } from "../long-work.ts";
import { operator } from "../operator.ts";
import { print, printJson } from "../output.ts";
import { promotionReport } from "../../calibration/promotion-report.ts";
import { withDatabase } from "../session.ts";

/** `roundhouse calibration …`: the results of replays. */
export function calibrationCommand(): Command {
  const command = new Command("calibration")
    .description("replays of each table's model: its state, and how well it fits")
    .addHelpText("after", examples("calibration list", "calibration show 12"));
  listCommand(command, {
    description: "calibrations, newest first: rolling ones, manual runs and promotions",
    filters: { table: ofTable("one table instead of all") },
    hasLimit: true,
    examples: ["calibration list", "calibration list --table bustabit/crash/global --json"],
    read: async ({ sql }, { tableIds }, { limit }) =>
      (await listCalibrations(sql, { tableId: tableIds?.[0], limit })).map(summaryOf),
    columns: LIST_COLUMNS,
  });
  command
    .command("show")
    .description("show a calibration: weights, losses, windows, waits, and a plot of its reliability")
    .argument("<id>", "its id, as `calibration list` shows it", calibrationId)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples("calibration show 12", "calibration show 12 --json"))
    .action((id: string, { json }: { json: boolean }) =>
      withDatabase(async ({ sql }) => {
        const row = await findCalibration(sql, id);
        if (row === null) throw missing(id);
        const detail = detailOf(row);
        await (json ? printJson(detail) : showDetail(detail));
      }),
    );
  command
    .command("compare")
    .description("compare two calibrations of a table, with their paired difference on the rounds that both cover")
    .argument("<a>", "the id of one", calibrationId)
    .argument("<b>", "the id of the other", calibrationId)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples("calibration compare 12 15", "calibration compare 12 15 --json"))
    .action(compare);
  command
    .command("promote")
    .description("promote a calibration to the live state of its table, rolled forward to the newest round")
    .argument("<id>", "its id, as `calibration list` shows it", calibrationId)
    .requiredOption("--reason <text>", "why", someText)
    .option("--by <name>", "who decided it; without it the user of this machine", someText)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples('calibration promote 12 --reason "the edge changed in March"'))
    .action(promote);
  return command;
}

function calibrationId(text: string): string {
  if (/^\d{1,18}$/.test(text)) return text;
  throw new InvalidArgumentError("expected a number.");
}

async function compare(a: string, b: string, { json }: { json: boolean }): Promise<void> {
  await withDatabase(
    async ({ sql }) => {
      const found = await withProgress({ title: "replaying", interrupted: "interrupted" }, (given) =>
        compareCalibrations(sql, [a, b], given),
      );
      const comparison = comparisonOf(found);
      await (json ? printJson(comparison) : showComparison(comparison));
    },
    { patient: true },
  );
}

async function refusingLaterPromotion(sql: Sql, id: string) {
  const row = await findCalibration(sql, id);
  if (row === null) throw missing(id);
  const newest = await findNewestPromotion(sql, row.tableId);
  return refuseLaterPromotion({ id: row.tableId, name: row.table }, newest?.id ?? null);
}

function missing(id: string): UsageError {
  return new UsageError(`there is no calibration ${id}; \`calibration list\` shows them`);
}

async function promote(id: string, given: { reason: string; by?: string; json: boolean }): Promise<void> {
  await withDatabase(
    async ({ sql, settings }) => {
      const decision = { by: given.by ?? operator(), reason: given.reason };
      const check = await refusingLaterPromotion(sql, id);
      const texts = { title: "rolling forward", interrupted: "interrupted before anything was switched" };
      const promoted = await withProgress(texts, async (steps) => {
        const done = await promoteCalibration(sql, id, decision, {
          ...steps,
          check,
          also: (tx, switched) => appendCommandAudit(tx, promotionReport(switched)),
        });
        await announce(sql, settings.LOG_LEVEL);
        return done;
      });
      const { calibration_id, table, model, version, to_seq, state_hash } = promoted;
      await (given.json
        ? printJson(promoted)
        : print(
            `calibration ${calibration_id} is live on ${table}: ${model} version ${version}, up to seq ${to_seq}\n` +
              `state ${state_hash}; made from calibration ${promoted.promoted_from}, which stays`,
          ));
    },
    { patient: true },
  );
}
