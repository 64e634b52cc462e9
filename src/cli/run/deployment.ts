import type { Settings } from "../../config/environment.ts";
import { UsageError } from "../../errors.ts";

type ServerVariable = "DATABASE_URL" | "REDIS_URL";

/**
 * The servers of a deployment in parts: api, worker and migrate never start private servers, since each part would then
 * have its own.
 * @throws UsageError listing every variable that is not set.
 */
export function requireVariables<Name extends ServerVariable>(settings: Settings, names: Name[]): Record<Name, string> {
  const missing = names.filter((name) => settings[name] === undefined);
  if (missing.length > 0) {
    throw new UsageError(
      "this part of a deployment needs its servers given (`roundhouse up` brings its own):",
      missing.map((path) => ({ path, message: "is not set" })),
    );
  }
  return Object.fromEntries(names.map((name) => [name, settings[name]])) as Record<Name, string>;
}
