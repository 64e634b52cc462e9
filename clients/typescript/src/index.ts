export { Roundhouse } from "./client.ts";
export type { Accuracy, CallOptions, ClientOptions, Forecasts, Games, Readings, Rounds, Usage } from "./client.ts";
export type { Checkpoint } from "./checkpoint.ts";
export type { Fetch } from "./retry.ts";
export type { components, paths } from "./types.ts";
export type { Wait } from "./wait.ts";
export {
  AccessError,
  ApiError,
  AuthenticationError,
  ConnectionError,
  DeclaredLogError,
  InconsistentLogError,
  InvalidRequestError,
  NotFoundError,
  RateLimitError,
  RoundhouseError,
  StaleLogError,
  UnavailableError,
} from "./errors.ts";
