import type { Variables } from "../../config/environment.ts";
import { reasonOf } from "../../errors.ts";

/**
 * Replaces every `${VAR}` in the texts of a value. The file's text is kept unexpanded in the database, so this runs
 * again wherever the settings are used.
 */
export function expandVariables(
  value: unknown,
  variables: Variables,
  unset: (path: PropertyKey[], message: string) => void,
  path: PropertyKey[] = [],
): unknown {
  if (typeof value === "string") {
    return value.replaceAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, name: string) => {
      let problem = `the variable ${name} is not set; set it in the environment of this process, or create the file ${name} in HOUSE_SECRETS_DIR`;
      try {
        const found = variables(name);
        if (found !== undefined && found !== "") return found;
      } catch (error) {
        problem = `the file that ${name}_FILE names cannot be used: ${reasonOf(error)}`;
      }
      unset(path, problem);
      return "";
    });
  }
  if (Array.isArray(value))
    return value.map((item, index) => expandVariables(item, variables, unset, [...path, index]));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, expandVariables(item, variables, unset, [...path, name])]),
  );
}
