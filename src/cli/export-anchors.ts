import { Command, Option } from "commander";
import type { Sql } from "../db/client.ts";
import { proveForecast } from "../forecasts/chain/anchors.ts";
import { listAnchors, type Anchor } from "../forecasts/chain/anchors-store.ts";
import { examples } from "./arguments.ts";
import { print, printJson, say } from "./output.ts";
import { withDatabase } from "./session.ts";

/** Large enough that the database is asked seldom; a year has nine thousand. */
const ROOTS_PER_PAGE = 5_000;

/** `roundhouse export roots`: one hash an hour, which whoever keeps it can hold against us later. */
export function rootsCommand(): Command {
  return new Command("roots")
    .description(
      "the root over all forecasts of each UTC hour, oldest first: keep them, and nothing can be changed unseen",
    )
    .addOption(new Option("--format <format>", "the format").choices(["csv", "json"]).default("csv"))
    .addHelpText("after", examples("export roots > roots.csv", "export roots --format json > roots.json"))
    .action(({ format }: { format: "csv" | "json" }) =>
      withDatabase(async ({ sql }) => {
        const hours = await (format === "csv" ? writeCsv(sql) : writeJson(sql));
        say(`${hours} hours; the hour that runs has its root a minute or two after its end`);
      }),
    );
}

/** `roundhouse export proof`: that a forecast is in the root of its hour. */
export function proofCommand(): Command {
  return new Command("proof")
    .description(
      "the proof that a forecast is among those of its hour, as JSON, to be checked against a root kept before",
    )
    .argument("<forecast_id>", "its id, as the API and the export show it")
    .addHelpText("after", examples("export proof f1-345", "export proof f1-345 > proof.json"))
    .action((forecastId: string) => withDatabase(async ({ sql }) => printJson(await proveForecast(sql, forecastId))));
}

async function writeCsv(sql: Sql): Promise<number> {
  let hours = 0;
  await print("hour,size,root");
  for await (const anchors of readAnchors(sql)) {
    await print(anchors.map(({ hour, size, root }) => `${hour},${size},${root}`).join("\n"));
    hours += anchors.length;
  }
  return hours;
}

/** One array with one hour a line. */
async function writeJson(sql: Sql): Promise<number> {
  let hours = 0;
  for await (const anchors of readAnchors(sql)) {
    const lines = anchors.map((anchor, index) => `${hours + index === 0 ? "[" : ","}${JSON.stringify(anchor)}`);
    await print(lines.join("\n"));
    hours += anchors.length;
  }
  await print(hours === 0 ? "[]" : "]");
  return hours;
}

async function* readAnchors(sql: Sql): AsyncGenerator<Anchor[]> {
  for (let after: string | null = null; ;) {
    const anchors: Anchor[] = await listAnchors(sql, after, ROOTS_PER_PAGE);
    if (anchors.length === 0) return;
    yield anchors;
    after = anchors.at(-1)?.hour ?? null;
  }
}
