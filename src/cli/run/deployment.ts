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
      "this command starts no servers:",
      missing.map((path) => ({
        path,
        message: `expected the URL of a server, found it not set; set it or ${path}_FILE, or use \`roundhouse up\`, which starts private servers`,
      })),
    );
  }
  return Object.fromEntries(names.map((name) => [name, settings[name]])) as Record<Name, string>;
}
