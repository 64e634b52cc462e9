import { readFile } from "node:fs/promises";
import { Command } from "commander";
import { type AuditFailure, verifyAudit } from "../../audit/verify.ts";
import { verify, type Verification } from "../../verify/verify.ts";
import { examples, readableFile, tableName } from "../arguments.ts";
import { print, printJson } from "../output.ts";
import { progressBar } from "../progress.ts";
import { withDatabase } from "../session.ts";
import { findTableByName } from "../table-name.ts";
import { verifyRoundsCommand } from "./verify-rounds.ts";

/** `roundhouse verify`: recomputes every published figure from rounds and forecasts. Exit code 1 if one differs. */
export function verifyCommand(): Command {
  return new Command("verify")
    .description("recompute every published figure from rounds and forecasts, and check every chain and the public log")
    .option("--table <house/game/market>", "one table instead of all", tableName)
    .option(
      "--checkpoint <file>",
      "a checkpoint of the log that you kept: all that it covers must still be there",
      readableFile,
    )
    .option("--payloads", "read every stored response too and compare it with its hash", false)
    .option("--json", "print one JSON object", false)
    .enablePositionalOptions() // as in main.ts
    .addCommand(verifyRoundsCommand())
    .addHelpText(
      "after",
      examples("verify", "verify --table bustabit/crash/global --json", "verify --checkpoint kept.txt"),
    )
    .action((given: { table?: string; checkpoint?: string; payloads: boolean; json: boolean }) =>
      withDatabase(
        async ({ sql, settings, databaseUrl }) => {
          const table = given.table === undefined ? undefined : await findTableByName(sql, given.table);
          const progress = progressBar();
          try {
            const figures = await verify(sql, {
              tableId: table?.id,
              checkpoint: given.checkpoint === undefined ? undefined : await readFile(given.checkpoint, "utf8"),
              payloads: given.payloads,
              witnesses: settings.LOG_WITNESSES,
              threads: { databaseUrl: settings.DATABASE_DIRECT_URL ?? databaseUrl },
              progress: (...state) => progress.show(...state),
            });
            const result = table === undefined ? withAudit(figures, await verifyAudit(sql)) : figures;
            progress.end();
            await (given.json ? printJson(result) : print(sentence(result)));
            if (!result.ok) process.exitCode = 1;
          } finally {
            progress.end();
          }
        },
        { patient: true },
      ),
    );
}

/** Prints what was checked of the figures and, when no table was chosen, of the audit log. */
interface Checked {
  ok: boolean;
  checked: Verification["checked"] & { audit_entries?: number };
  first_failure: Verification["first_failure"] | ({ kind: "audit_log" } & AuditFailure);
  unknown_cosignatures?: number;
  unstated?: Verification["unstated"];
}

function withAudit(figures: Verification, { entries, failure }: Awaited<ReturnType<typeof verifyAudit>>): Checked {
  return {
    ...figures,
    ok: figures.ok && failure === null,
    checked: { ...figures.checked, audit_entries: entries },
    first_failure: figures.first_failure ?? (failure && { kind: "audit_log", ...failure }),
  };
}

function sentence(result: Checked): string {
  const { checked, first_failure: failure } = result;
  const { rounds, forecasts, scores, accuracy_rows, payloads, audit_entries } = checked;
  const log = audit_entries === undefined ? "" : `, and ${audit_entries} entries of the audit log`;
  const stored = payloads === undefined ? "" : `, ${payloads} payloads`;
  const counted = `${rounds} rounds, ${forecasts} forecasts, ${scores} scores and ${accuracy_rows} accuracy rows${stored}${log}`;
  if (failure === null) {
    const found = `all is as it should be: ${counted} are what their facts give, and all chains hold`;
    return [found, ...uncheckedSentences(result)].join("\n");
  }
  const { kind, id, expected, found } = failure;
  return (
    `the ${NAMES[kind]} ${id} is not what its facts give\n  expected ${expected}\n  found    ${found}\n` +
    `${counted} before it are right; what comes after it was not looked at`
  );
}

/** What could not be checked. */
function uncheckedSentences({ unknown_cosignatures: unknown, unstated }: Checked): string[] {
  const cosigned =
    unknown === undefined
      ? []
      : [
          `${unknown} checkpoints are cosigned by a key that is not configured: their times cannot be checked, and sealed counts ` +
            "them; run verify with that key in LOG_WITNESSES to check them",
        ];
  if (unstated === undefined) return cosigned;
  const { since, reason } = unstated;
  const why = reason === "paused" ? "the queue publish-log is paused" : "the newest log is not signed yet";
  return [...cosigned, `the transparency log does not prove forecasts issued since ${since}: ${why}`];
}

const NAMES = {
  model: "model",
  round: "round",
  revision: "revision of the round",
  payload: "payload",
  forecast: "forecast",
  score: "score of the forecast",
  accuracy: "accuracy row",
  log: "transparency log at",
  log_statement: "rows that the log states in entry",
  checkpoint: "checkpoint",
  calibration: "calibration",
  snapshot: "snapshot of",
  published_reading: "published reading of",
  audit: "audit row",
  audit_log: "entry of the audit log",
  table: "table",
} as const;
