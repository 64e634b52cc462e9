import { OPERATIONS } from "../../api/operations.ts";
import { USAGE_PATH } from "../../api/usage.ts";

/** Something that can be tried from the console, with parameters that keep its answer short. */
export interface ExampleCall {
  /** What a form calls it. */
  name: string;
  path: string;
  /** What it is for, in a few words. */
  about: string;
}

/** Parameters that keep an answer short, and what an endpoint is for. */
const EXAMPLES: Readonly<Record<string, { parameters: string; about: string }>> = {
  games: { parameters: "", about: "The tables of your plan, and whether each is live." },
  rounds: { parameters: "?limit=3", about: "The newest rounds of each table." },
  forecasts: { parameters: "", about: "Forecast windows and probabilities of the rounds to come." },
  readings: { parameters: "", about: "How each table behaves now, in words and numbers." },
  accuracy: { parameters: "?period=24h", about: "The measured accuracy of forecasts, with sample sizes." },
};

/** Every endpoint of the API, in its order; the last costs no call. */
export const ENDPOINTS_TO_TRY: readonly ExampleCall[] = [
  ...OPERATIONS.map(({ path, endpoint }) => ({
    name: endpoint,
    path: path + (EXAMPLES[endpoint]?.parameters ?? ""),
    about: EXAMPLES[endpoint]?.about ?? "",
  })),
  { name: "usage", path: USAGE_PATH, about: "What you have used. This endpoint is free." },
];
