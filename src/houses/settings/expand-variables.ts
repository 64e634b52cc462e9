import type { Variables } from "../../config/environment.ts";

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
      const found = variables(name);
      if (found === undefined || found === "") {
        unset(path, `the variable ${name} is not set; set it in the environment of this process`);
        return "";
      }
      return found;
    });
  }
  if (Array.isArray(value))
    return value.map((item, index) => expandVariables(item, variables, unset, [...path, index]));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, expandVariables(item, variables, unset, [...path, name])]),
  );
}
