import { Command, InvalidArgumentError, Option } from "commander";
import { wireFormats } from "../../demo/replay/formats.ts";
import { createReplayHouse } from "../../demo/replay/house.ts";
import type { DemoHouse } from "../../demo/serve.ts";
import { startDemoHouse } from "../../demo/server.ts";
import { UsageError } from "../../errors.ts";
import { examples, wholeNumber } from "../arguments.ts";
import { print, printJson, say } from "../output.ts";
import { onStopSignal } from "../stop-signal.ts";

/** What the command line gives. */
interface Given {
  port: number;
  speed: number;
  seed: number;
  replay?: string;
  as?: string;
  from?: string;
  numberRows?: boolean;
  json: boolean;
}

/**
 * `roundhouse demo-house`: both demo houses alone, or with --replay a house that serves recorded rounds, on HOST (loopback
 * by default), until SIGINT or SIGTERM.
 *
 * The URL goes to stdout, with --json as one line `{"event":"ready","url":…}`; everything else to stderr.
 * @param settings read when the command runs: DATA_DIR and HOST.
 */
export function demoHouseCommand(settings: () => { dataDir: string; host: string }): Command {
  const formats = [...wireFormats.keys()];
  const ofReplay = (option: Option): Option => option.conflicts("seed");
  return new Command("demo-house")
    .description("serve the demo houses alone (true past bustabit rounds, and a simulated house), or recorded rounds")
    .option("--port <number>", "port to listen on; 0 takes any free one", wholeNumber(0, 65_535), 4010)
    .option(
      "--speed <factor>",
      "1 plays one true game per second, or recorded rounds as they were played; 0.01 to 1000",
      speedFactor,
      1,
    )
    .option("--seed <number>", "the seed of the simulated rounds", wholeNumber(0), 1)
    .addOption(
      ofReplay(
        new Option(
          "--replay <file>",
          "serve the rounds of this CSV (or .csv.gz) instead, oldest first: multiplier and maybe round_id, occurred_at, hash",
        ),
      ),
    )
    .addOption(
      ofReplay(
        new Option("--as <format>", "the wire format of a house, read by its adapter (default json)").choices(formats),
      ),
    )
    .addOption(
      ofReplay(new Option("--from <id>", "begin with this round; those before it are history (default the first)")),
    )
    .addOption(
      ofReplay(new Option("--number-rows", "use row numbers as ids, and leave out rounds without a multiplier")),
    )
    .option("--json", "print one line of JSON when it listens", false)
    .addHelpText("after", HELP)
    .addHelpText(
      "after",
      examples(
        "demo-house",
        "demo-house --port 4010 --speed 10",
        "demo-house --replay blaze_crash_2022.csv.gz --as blaze --speed 20",
      ),
    )
    .action(async (given: Given) => {
      const { dataDir, host } = settings();
      const house = await startHouse(given, { dataDir, host });
      await (given.json ? printJson({ event: "ready", url: house.url }) : print(house.url));
      await new Promise<void>((stopped) => void onStopSignal(stopped));
      await house.close();
    });
}

const HELP = `
A replay serves rounds in the order of the file. The pause between two rounds is that of the recorded times divided by the
speed; without times it is the game's usual one. Times are moved to now. Rows without ids are numbered from 1. An empty
multiplier is a round that was missed when recording: it is served without a value. The page at / shows what has been
served so far and the entry of houses.yaml that reads it.`;

function startHouse(given: Given, { dataDir, host }: { dataDir: string; host: string }): Promise<DemoHouse> {
  const { port, speed, seed, replay, as = "json", from, numberRows = false } = given;
  if (replay === undefined) {
    if (given.as === undefined && from === undefined && !numberRows) {
      return startDemoHouse({ dataDir, host, port, speed, seed, say });
    }
    throw new UsageError("expected --replay with a file together with --as, --from and --number-rows");
  }
  const chosen = from === undefined ? {} : { from };
  return createReplayHouse({ file: replay, as, host, port, speed, numbered: numberRows, say, ...chosen });
}

function speedFactor(text: string): number {
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value >= 0.01 && value <= 1000) return value;
  throw new InvalidArgumentError("expected a factor from 0.01 to 1000.");
}
