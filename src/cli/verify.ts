import { Command } from "commander";
import { verify, type Verification } from "../forecasts/verify.ts";
import { examples } from "./arguments.ts";
import { print, printJson } from "./output.ts";
import { progressBar } from "./progress.ts";
import { withDatabase } from "./session.ts";
import { findTableByName } from "./table-name.ts";

/** `roundhouse verify`: every published figure recomputed from rounds and forecasts. Exit code 1 where one is not so. */
export function verifyCommand(): Command {
  return new Command("verify")
    .description("recompute every published figure from forecasts and rounds, and check both chains of hashes")
    .option("--table <house/game/market>", "one table instead of all")
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples("verify", "verify --table bustabit/crash/global --json"))
    .action((given: { table?: string; json: boolean }) =>
      withDatabase(
        async ({ sql }) => {
          const table = given.table === undefined ? undefined : await findTableByName(sql, given.table);
          const progress = progressBar();
          try {
            const result = await verify(sql, { tableId: table?.id, progress: (...told) => progress.show(...told) });
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

function sentence({ checked, first_failure: failure }: Verification): string {
  const { rounds, forecasts, scores, accuracy_rows } = checked;
  const counted = `${rounds} rounds, ${forecasts} forecasts, ${scores} scores and ${accuracy_rows} accuracy rows`;
  if (failure === null) return `all is as it should be: ${counted} are what their facts give, and both chains hold`;
  const { kind, id, expected, found } = failure;
  return (
    `the ${NAMES[kind]} ${id} is not what its facts give\n  expected ${expected}\n  found    ${found}\n` +
    `${counted} before it are right; what comes after it was not looked at`
  );
}

const NAMES = {
  round: "round",
  forecast: "forecast",
  score: "score of the forecast",
  accuracy: "accuracy row",
  published_accuracy: "published accuracy of",
  references: "sums of the references beside the accuracy row",
  published_references: "published sums of the references of",
  reference_mark: "memory of the references of",
  root: "root of the hour",
  calibration: "calibration",
  reading: "memory of the reading of",
  published_reading: "published reading of",
  audit: "audit row",
  table: "table",
} as const;
