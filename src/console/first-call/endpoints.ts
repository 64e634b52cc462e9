import { OPERATIONS } from "../../api/operations.ts";
import { USAGE_PATH } from "../../api/usage.ts";

/** A call that the console offers to try, with parameters that keep the response short. */
export interface ExampleCall {
  /** Value in the form. */
  name: string;
  path: string;
  /** Its purpose in a few words. */
  about: string;
}

/** By endpoint: parameters that keep the response short, and its purpose. */
const EXAMPLES: Readonly<Record<string, { parameters: string; about: string }>> = {
  games: { parameters: "", about: "The tables of your plan, and whether each is live." },
  rounds: { parameters: "?limit=3", about: "The newest rounds of each table." },
  forecasts: { parameters: "", about: "Forecast windows and probabilities of the rounds to come." },
  readings: { parameters: "", about: "How each table behaves now, in words and numbers." },
  accuracy: { parameters: "?period=24h", about: "The measured accuracy of forecasts, with sample sizes." },
};

/** All endpoints of the API in order; the last one is free. */
export const ENDPOINTS_TO_TRY: readonly ExampleCall[] = [
  ...OPERATIONS.map(({ path, endpoint }) => ({
    name: endpoint,
    path: path + (EXAMPLES[endpoint]?.parameters ?? ""),
    about: EXAMPLES[endpoint]?.about ?? "",
  })),
  { name: "usage", path: USAGE_PATH, about: "What you have used. This endpoint is free." },
];
