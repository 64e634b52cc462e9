import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { parseDocument } from "yaml";
import { z } from "zod";
import { reasonOf, UsageError, type Problem } from "../errors.ts";
import { isNameServer } from "../houses/polling/names.ts";
import { houseSettings, type HouseSettings } from "../houses/settings/settings.ts";
import { mailVariables } from "./mail.ts";
import { parseWitnesses } from "../record/log/witness-client.ts";
import { placeOfRedis } from "../redis-url.ts";
import { bankVariables } from "./bank.ts";
import { binancePayProblems, binancePayVariables } from "./binance-pay.ts";
import { usdtProblems, usdtVariables } from "./usdt.ts";

const flag = z
  .enum(["", "0", "1", "true", "false", "on", "off"])
  .default("")
  .transform((value) => value === "1" || value === "true" || value === "on");
const port = (fallback: number) => z.coerce.number().int().min(0).max(65535).default(fallback);
const count = (fallback: number, min: number, max: number) =>
  z.coerce.number().int().min(min).max(max).default(fallback);
const serverUrl = (...schemes: string[]) =>
  z.string().refine((text) => URL.canParse(text) && schemes.includes(new URL(text).protocol), {
    error: `expected a URL that begins with ${schemes.map((scheme) => `${scheme}//`).join(" or ")}`,
  });

const redisUrl = z.string().refine((text) => placeOfRedis(text) !== null, {
  error:
    "expected a URL that begins with redis:// or rediss://, or redis+cluster:// or rediss+cluster:// with the nodes of a cluster and commas between",
});

/** Addresses or networks such as 10.0.0.0/8, with commas between: who may say on whose behalf a request comes. */
const proxies = z
  .string()
  .default("")
  .transform((text) => (text === "" ? [] : text.split(",").map((one) => one.trim())))
  .refine((list) => list.every(isNetwork), {
    error: "expected addresses or networks such as 10.0.0.0/8, with commas between",
  });

/** Who is asked for the addresses of houses. */
const nameServers = z
  .string()
  .default("")
  .transform((text) => (text === "" ? [] : text.split(",").map((one) => one.trim())))
  .refine((list) => list.every(isNameServer), {
    error: "expected addresses such as 9.9.9.9 or [2620:fe::fe]:53, with commas between",
  });

/** Verifier keys and addresses of the witnesses that cosign the public log. */
const witnesses = z
  .string()
  .default("")
  .transform((text, context) => {
    try {
      return parseWitnesses(text);
    } catch (error) {
      context.addIssue({ code: "custom", message: reasonOf(error) });
      return z.NEVER;
    }
  });

const environment = z
  .object({
    DATABASE_URL: serverUrl("postgres:", "postgresql:").optional(),
    DATABASE_DIRECT_URL: serverUrl("postgres:", "postgresql:").optional(),
    REDIS_URL: redisUrl.optional(),
    DATA_DIR: z.string().min(1).default(".roundhouse"),
    LOG_DIR: z.string().min(1).optional(),
    LOG_WITNESSES: witnesses,
    HOST: z.string().min(1).default("127.0.0.1"),
    PORT: port(3000),
    WORKER_PORT: port(3001),
    HOUSES_FILE: z.string().min(1).default("houses.yaml"),
    LIVE_WINDOW_SECONDS: count(300, 1, 86_400),
    BUFFER_ROUNDS: count(200, 1, 10_000),
    LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
    PUBLIC_URL: serverUrl("http:", "https:").optional(),
    PAYLOAD_RETENTION_HOURS: count(48, 1, 24 * 366),
    TRUSTED_PROXIES: proxies,
    OPERATOR_NAME: z.string().trim().min(1).max(200).optional(),
    HELPLINES_FILE: z.string().min(1).optional(),
    AUTH_SECRET: z
      .string()
      .min(32, "expected at least 32 characters, such as `openssl rand -base64 33` gives")
      .optional(),
    AUTH_SECRET_PREVIOUS: z.string().min(1).optional(),
    OPS_REQUIRE_TWO_FACTOR: flag,
    METRICS_TOKEN: z.string().min(16).optional(),
    ALLOW_PRIVATE_HOUSES: flag,
    HOUSE_NAME_SERVERS: nameServers,
    DEMO_HOUSE_URL: serverUrl("http:").optional(),
    ...mailVariables,
    ...bankVariables,
    ...usdtVariables,
    ...binancePayVariables,
  })
  .superRefine((given, context) => {
    for (const problem of [...usdtProblems(given), ...binancePayProblems(given)])
      context.addIssue({ code: "custom", ...problem });
  });

function isNetwork(text: string): boolean {
  const [address = "", bits, ...more] = text.split("/");
  const width = isIP(address) === 6 ? 128 : 32;
  if (isIP(address) === 0 || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= width);
}

/** Settings of a process, from its environment. Every variable is described in docs/settings.md. */
export type Settings = z.infer<typeof environment>;

/** A variable lookup for `${VAR}`: undefined where it is not set. */
export type Variables = (name: string) => string | undefined;

/**
 * Reads the settings of this process from its environment; an empty variable counts as not set.
 * @throws UsageError listing every wrong variable at once; values are not repeated, since some are secrets.
 */
export function loadSettings(env: NodeJS.ProcessEnv = process.env): Settings {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const result = environment.safeParse(given);
  if (result.success) return result.data;
  throw new UsageError("the environment is not usable:", result.error.issues.map(toProblem));
}

/** The variables of this process, for `${VAR}` in houses.yaml. */
export function variablesOf(env: NodeJS.ProcessEnv = process.env): Variables {
  return (name) => env[name];
}

/** The folder that the public log is signed from: LOG_DIR, else `log` in DATA_DIR. */
export function logFolderOf({ LOG_DIR, DATA_DIR }: Pick<Settings, "LOG_DIR" | "DATA_DIR">): string {
  return LOG_DIR ?? join(DATA_DIR, "log");
}

/** Whether npm runs this process in the foreground, by `npm start` or `npx roundhouse`, and waits for it. */
export function isRunByNpm(env: NodeJS.ProcessEnv = process.env): boolean {
  return ["start", "npx"].includes(env["npm_lifecycle_event"] ?? "");
}

/** One house of the file: `settings` as used (variables replaced, defaults filled in), `entry` as written. */
export interface HouseEntry {
  settings: HouseSettings;
  entry: Record<string, unknown>;
}

/**
 * Reads and checks houses.yaml.
 * @throws UsageError with every problem at once, each with its path in the file such as `houses[1].tables[0].colors`.
 */
export function loadHouses(file: string, variables: Variables, options: { allowPrivate: boolean }): HouseEntry[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`the houses file ${file} cannot be read (set HOUSES_FILE to another): ${reasonOf(error)}`);
  }
  const document = parseDocument(text, { prettyErrors: true });
  if (document.errors.length > 0) {
    const problems = document.errors.map((error) => ({
      path: `line ${error.linePos?.[0].line ?? "?"}`,
      message: error.message.split("\n")[0] ?? "not YAML",
    }));
    throw new UsageError(`the houses file ${file} is not YAML:`, problems);
  }
  const problems: Problem[] = [];
  const raw: unknown = document.toJS();
  const outer = z.strictObject({ houses: z.array(z.record(z.string(), z.unknown())).min(1) }).safeParse(raw);
  if (!outer.success) {
    throw new UsageError(`the houses file ${file} is not usable:`, outer.error.issues.map(toProblem));
  }
  const houses = outer.data.houses.flatMap((entry, index): HouseEntry[] => {
    const at = ["houses", index];
    const expanded = expandVariables(entry, variables, (path, message) => {
      // a house that is never asked needs no secrets yet
      if (entry["enabled"] !== false) problems.push({ path: pathText([...at, ...path]), message });
    });
    const result = houseSettings.safeParse(expanded);
    if (!result.success) {
      problems.push(...result.error.issues.map((issue) => toProblem({ ...issue, path: [...at, ...issue.path] })));
    }
    const { tables, ...address } = outline.parse(expanded);
    problems.push(...addressProblems(address, options.allowPrivate, pathText([...at, "base_url"])));
    problems.push(...repeatedTables(entry["id"], tables, pathText([...at, "tables"])));
    return result.success ? [{ settings: result.data, entry }] : [];
  });
  problems.push(...repeatedHouses(outer.data.houses));
  if (problems.length > 0) throw new UsageError(`the houses file ${file} is not usable:`, problems);
  return houses;
}

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

/** What is looked at even where the rest of a house is wrong, so that every problem is told at once. */
const outline = z.object({
  demo: z.boolean().catch(false),
  private: z.boolean().catch(false),
  base_url: z.string().optional().catch(undefined),
  tables: z.array(z.object({ game: z.string(), market: z.string() }).nullable().catch(null)).catch([]),
});
type Outline = z.infer<typeof outline>;

function addressProblems(house: Omit<Outline, "tables">, allowPrivate: boolean, path: string): Problem[] {
  if (house.demo || house.base_url === undefined || !URL.canParse(house.base_url)) return [];
  const url = new URL(house.base_url);
  if (url.username !== "" || url.password !== "") {
    return [{ path, message: "expected no user and password in it; give them as a header with `${VAR}`" }];
  }
  if (house.private && !allowPrivate) {
    return [{ path, message: "a private house needs ALLOW_PRIVATE_HOUSES=1 in the environment" }];
  }
  if (url.protocol !== "https:" && !house.private) {
    return [{ path, message: "expected https; http is for houses marked `private: true`" }];
  }
  return [];
}

function repeatedTables(house: unknown, tables: Outline["tables"], path: string): Problem[] {
  return tables.flatMap((one, index) => {
    const first = tables.findIndex((other) => other?.game === one?.game && other?.market === one?.market);
    return one === null || first === index
      ? []
      : [
          {
            path: `${path}[${index}]`,
            message: `the table ${String(house)}/${one.game}/${one.market} is already tables[${first}]`,
          },
        ];
  });
}

function repeatedHouses(entries: Record<string, unknown>[]): Problem[] {
  return entries.flatMap((entry, index) => {
    const first = entries.findIndex((other) => other["id"] === entry["id"]);
    return entry["id"] === undefined || first === index
      ? []
      : [
          {
            path: `houses[${index}].id`,
            message: `${JSON.stringify(entry["id"])} is already the id of houses[${first}]`,
          },
        ];
  });
}

function toProblem(issue: z.core.$ZodIssue): Problem {
  const message = issue.code === "invalid_key" ? issue.issues[0]?.message : issue.message;
  return { path: pathText(issue.path) || "the file", message: message ?? issue.message };
}

function pathText(path: PropertyKey[]): string {
  return path
    .map((part, at) => (typeof part === "number" ? `[${part}]` : `${at > 0 ? "." : ""}${String(part)}`))
    .join("");
}
