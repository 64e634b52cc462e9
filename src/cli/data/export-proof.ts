import { Command, InvalidArgumentError } from "commander";
import { withReader } from "../../db/reader.ts";
import { parseForecastId } from "../../forecasts/chain/forecast-id.ts";
import { proveForecast } from "../../record/log/prove.ts";
import { examples } from "../arguments.ts";
import { printJson } from "../output.ts";
import { withDatabase } from "../session.ts";

/** `roundhouse export proof`: the proof that a forecast is in the transparency log. */
export function proofCommand(): Command {
  return new Command("proof")
    .description("the proof, as JSON, that a forecast is in the public log, to be checked against a kept checkpoint")
    .argument("<forecast_id>", "its id, as the API and the export show it", forecastId)
    .addHelpText("after", examples("export proof f1-345", "export proof f1-345 > proof.json"))
    .action((id: string) =>
      withDatabase(({ sql, databaseUrl, settings }) =>
        withReader(settings.DATABASE_DIRECT_URL ?? databaseUrl, async (read) =>
          printJson(await proveForecast(sql, read, id)),
        ),
      ),
    );
}

function forecastId(text: string): string {
  if (parseForecastId(text) !== null) return text;
  throw new InvalidArgumentError("expected the id of a forecast, such as f12-345.");
}
