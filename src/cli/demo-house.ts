import { once } from "node:events";
import { Command, InvalidArgumentError } from "commander";
import { startDemoHouse } from "../houses/demo/server.ts";
import { examples, wholeNumber } from "./arguments.ts";
import { print, printJson, say } from "./output.ts";

/**
 * `roundhouse demo-house`: both demo houses alone, on HOST (loopback unless set), until SIGINT or SIGTERM.
 *
 * The URL goes to stdout, with --json as one line `{"event":"ready","url":…}`; everything else to stderr.
 * @param settings read when the command runs: DATA_DIR and HOST.
 */
export function demoHouseCommand(settings: () => { dataDir: string; host: string }): Command {
  return new Command("demo-house")
    .description("serve the demo houses alone: true past bustabit rounds, and a simulated house with troubles")
    .option("--port <number>", "port to listen on; 0 takes any free one", wholeNumber(0, 65_535), 4010)
    .option("--speed <factor>", "1 is one true game a second; 0.01 to 1000", speedFactor, 1)
    .option("--seed <number>", "what the simulated house draws from", wholeNumber(0), 1)
    .option("--json", "print one line of JSON when it listens", false)
    .addHelpText("after", examples("demo-house", "demo-house --port 4010 --speed 10"))
    .action(async ({ port, speed, seed, json }: { port: number; speed: number; seed: number; json: boolean }) => {
      const house = await startDemoHouse({
        ...settings(),
        port,
        speed,
        seed,
        say,
      });
      await (json ? printJson({ event: "ready", url: house.url }) : print(house.url));
      await firstOf("SIGINT", "SIGTERM");
      await house.close();
    });
}

async function firstOf(...signals: NodeJS.Signals[]): Promise<void> {
  const others = new AbortController();
  try {
    await Promise.race(signals.map((signal) => once(process, signal, { signal: others.signal })));
  } finally {
    others.abort();
  }
}

function speedFactor(text: string): number {
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value >= 0.01 && value <= 1000) return value;
  throw new InvalidArgumentError("expected a factor from 0.01 to 1000.");
}
