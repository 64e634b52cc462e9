import { Command, InvalidArgumentError, Option } from "commander";
import { PERIODS } from "../../forecasts/accuracy/periods.ts";
import { showDetail, showList } from "./accuracy-text.ts";
import { examples, houseId, tableName } from "../arguments.ts";
import { measure, type Asked } from "./measure-tables.ts";
import { printJson, say } from "../output.ts";
import { withDatabase } from "../session.ts";

const FEATURE = /^(?:next_color|window:[a-z0-9][a-z0-9_-]{0,31}:(?:50|80|90))$/;

/** `roundhouse accuracy`: the measured accuracy of issued forecasts and its uncertainty. */
export function accuracyCommand(): Command {
  return new Command("accuracy")
    .description("the measured accuracy of issued forecasts, with its uncertainty and reference forecasts")
    .option("--table <house/game/market>", "one table instead of all", tableName)
    .addOption(new Option("--house <id>", "the tables of a house together").argParser(houseId).conflicts("table"))
    .option("--feature <name>", "next_color or window:<color>:<50, 80 or 90>; of one table or house in detail", feature)
    .addOption(new Option("--period <period>", "how far back").choices(PERIODS).default("30d"))
    .option("--json", "print a JSON array with all details", false)
    .addHelpText(
      "after",
      examples(
        "accuracy",
        "accuracy --table bustabit/crash/global --feature window:pink:80 --period all",
        "accuracy --house bustabit --json",
      ),
    )
    .action((given: Asked & { json: boolean }) =>
      withDatabase(async ({ sql }) => {
        const measured = await measure(sql, given);
        if (given.json) return printJson(measured);
        if (measured.length === 0) return say(`nothing was measured in this period (${given.period}) yet`);
        const [only] = measured;
        const isDetailed = given.feature !== undefined && only !== undefined && measured.length === 1;
        return isDetailed ? showDetail(only) : showList(measured);
      }),
    );
}

function feature(text: string): string {
  if (FEATURE.test(text)) return text;
  throw new InvalidArgumentError("expected next_color or window:<color>:<50, 80 or 90>.");
}
