import { existsSync, readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { z } from "zod";
import { type Problem, reasonOf, UsageError } from "../errors.ts";
import { SETTING_GROUPS, type SettingText } from "./settings-text.ts";
import { isNameServer } from "./name-server.ts";
import { mailVariables } from "./mail.ts";
import { parseWitnesses } from "./witnesses.ts";
import { placeOfRedis } from "../redis-url.ts";
import { bankVariables } from "./bank.ts";
import { binancePayVariables } from "./binance-pay.ts";
import { usdtProblems, usdtVariables } from "./usdt.ts";
import { commaSeparated, flag, isHttpUrl, oneLine, oneOf, wholeNumber } from "./values.ts";

const serverUrl = (...schemes: string[]) =>
  z.string().refine((text) => URL.canParse(text) && schemes.includes(new URL(text).protocol), {
    error: `expected a URL that begins with ${schemes.map((scheme) => `${scheme}//`).join(" or ")}`,
  });

/** Everything is served at the root of PUBLIC_URL, and links in mails are made from it. */
const publicUrl = z
  .string()
  .refine((text) => isHttpUrl(text) && new URL(text).href === `${new URL(text).origin}/`, {
    error: "expected a URL such as https://rounds.example, without a path, a query or a user",
  })
  .transform((text) => new URL(text).origin)
  .optional();

const redisUrl = z.string().refine((text) => placeOfRedis(text) !== null, {
  error:
    "expected a URL that begins with redis:// or rediss://, redis+cluster:// (rediss+cluster://) with the nodes of a cluster and commas between, or redis+sentinel:// (rediss+sentinel://) with sentinels and the master's name, such as redis+sentinel://:password@a,b,c/main",
});

/** Addresses or networks such as 10.0.0.0/8, comma-separated: proxies that may set a request's client address. */
const proxies = commaSeparated.refine((list) => list.every(isNetwork), {
  error: "expected addresses or networks such as 10.0.0.0/8, with commas between",
});

/** The name servers for the addresses of houses. */
const nameServers = commaSeparated.refine((list) => list.every(isNameServer), {
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

const environment = z.object({
  DATABASE_URL: serverUrl("postgres:", "postgresql:").optional(),
  DATABASE_READ_URL: serverUrl("postgres:", "postgresql:").optional(),
  DATABASE_DIRECT_URL: serverUrl("postgres:", "postgresql:").optional(),
  REDIS_URL: redisUrl.optional(),
  DATA_DIR: z.string().min(1).default(".roundhouse"),
  LOG_DIR: z.string().min(1).optional(),
  LOG_WITNESSES: witnesses,
  HOST: z.string().min(1).default("127.0.0.1"),
  PORT: wholeNumber(0, 65_535).default(3000),
  WORKER_PORT: wholeNumber(0, 65_535).default(3001),
  DRAIN_SECONDS: wholeNumber(0, 300).default(5),
  HOUSES_FILE: z.string().min(1).default("houses.yaml"),
  LIVE_WINDOW_SECONDS: wholeNumber(1, 86_400).default(300),
  BUFFER_ROUNDS: wholeNumber(1, 10_000).default(200),
  LOG_LEVEL: oneOf(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  PUBLIC_URL: publicUrl,
  PAYLOAD_RETENTION_HOURS: wholeNumber(1, 24 * 366).default(48),
  TRUSTED_PROXIES: proxies,
  OTEL_EXPORTER_OTLP_ENDPOINT: serverUrl("http:", "https:").optional(),
  OPERATOR_NAME: oneLine(200).optional(),
  HELPLINES_FILE: z.string().min(1).optional(),
  AUTH_SECRET: z
    .string()
    .min(32, "expected at least 32 characters, such as `openssl rand -base64 33` gives")
    .optional(),
  AUTH_SECRET_PREVIOUS: z.string().min(1).optional(),
  OPS_REQUIRE_TWO_FACTOR: flag,
  METRICS_TOKEN: z.string().min(16, "expected at least 16 characters, such as `openssl rand -hex 16` gives").optional(),
  ALLOW_PRIVATE_HOUSES: flag,
  HOUSE_NAME_SERVERS: nameServers,
  HOUSE_SECRETS_DIR: z.string().min(1).optional(),
  DEMO_HOUSE_URL: serverUrl("http:").optional(),
  ...mailVariables,
  ...bankVariables,
  ...usdtVariables,
  ...binancePayVariables,
});

/** Settings that have no use without another one, and what neither of them means. */
const NEEDS: readonly [name: keyof Settings, other: keyof Settings, neither: string][] = [
  ["DATABASE_DIRECT_URL", "DATABASE_URL", ""],
  ["DATABASE_READ_URL", "DATABASE_URL", ""],
  ["BANK_BENEFICIARY", "BANK_IBAN", " to offer no bank transfer"],
  ["BANK_IBAN", "BANK_BENEFICIARY", " to offer no bank transfer"],
  ["USDT_XPUB", "USDT_RPC_URLS", " to take no USDT"],
  ["USDT_RPC_URLS", "USDT_XPUB", " to take no USDT"],
  ["BINANCE_PAY_KEY", "BINANCE_PAY_SECRET", " to offer no payment app"],
  ["BINANCE_PAY_SECRET", "BINANCE_PAY_KEY", " to offer no payment app"],
];

function problemsOfPairs(given: NodeJS.ProcessEnv): Problem[] {
  const alone = NEEDS.filter(([name, other]) => given[name] !== undefined && given[other] === undefined);
  return alone.map(([path, other, neither]) => {
    return { path, message: `expected ${other} too, found it not set; set both, or neither${neither}` };
  });
}

function isNetwork(text: string): boolean {
  const [address = "", bits, ...more] = text.split("/");
  const width = isIP(address) === 6 ? 128 : 32;
  if (isIP(address) === 0 || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= width);
}

/** Settings of a process, from its environment. Every variable is described in docs/settings.md. */
export type Settings = z.infer<typeof environment>;

/** Looks up a variable for `${VAR}`: undefined if it is not set. */
export type Variables = (name: string) => string | undefined;

/** Settings that are secrets or hold one: each may be given as the path of a file instead, in `NAME_FILE`. */
export const SECRET_SETTINGS = [
  "DATABASE_URL",
  "DATABASE_DIRECT_URL",
  "DATABASE_READ_URL",
  "REDIS_URL",
  "AUTH_SECRET",
  "AUTH_SECRET_PREVIOUS",
  "METRICS_TOKEN",
  "SMTP_URL",
  "STAFF_WEBHOOK_URL",
  "USDT_XPUB",
  "USDT_RPC_URLS",
  "BINANCE_PAY_KEY",
  "BINANCE_PAY_SECRET",
] as const satisfies readonly (keyof Settings)[];
const SECRETS: ReadonlySet<string> = new Set(SECRET_SETTINGS);
const LARGEST_SECRET = 65_536;
const LONGEST_SHOWN = 60;

/**
 * Reads the settings of this process from its environment; an empty variable counts as not set. A secret may be in a
 * file that `NAME_FILE` names; an empty file counts as not set too.
 * @throws UsageError listing every wrong variable; secrets are not repeated.
 */
export function loadSettings(env: NodeJS.ProcessEnv = process.env): Settings {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const problems: Problem[] = [];
  for (const name of SECRET_SETTINGS) {
    const file = given[`${name}_FILE`];
    if (file === undefined) continue;
    if (given[name] !== undefined) {
      problems.push({ path: `${name}_FILE`, message: `expected either it or ${name}, found both; remove one` });
      continue;
    }
    try {
      const text = readSecret(file);
      if (text !== "") given[name] = text;
    } catch (error) {
      const message = `expected a file with the secret alone, found that ${reasonOf(error)}; correct the path or the file`;
      problems.push({ path: `${name}_FILE`, message });
    }
  }
  const result = environment.safeParse(given);
  // a number such as -1.5 has several issues
  const issues = Map.groupBy(result.error?.issues ?? [], ({ path }) => String(path[0]));
  for (const [path, [issue]] of issues) problems.push({ path, message: completeMessage(path, issue?.message, given) });
  if (result.success) {
    const { data } = result;
    problems.push(...problemsOfPairs(given), ...usdtProblems(data));
    if (problems.length === 0) return data;
  }
  throw new UsageError("the environment is not usable:", problems);
}

/** Adds what was found and what to do, if a message of the schema has only what was expected. */
function completeMessage(name: string, message = "expected another value", given: NodeJS.ProcessEnv): string {
  if (message.includes("; ")) return message;
  const found = message.includes(", found ") ? message : `${message}, found ${shownValue(name, given[name] ?? "")}`;
  return `${found}; ${adviceFor(name, given[`${name}_FILE`])}`;
}

function shownValue(name: string, value: string): string {
  // a URL of any setting may have a password
  if (SECRETS.has(name) || /\/\/.*@/.test(value)) return `${value.length} characters (a secret, not shown)`;
  return JSON.stringify(value.length > LONGEST_SHOWN ? `${value.slice(0, LONGEST_SHOWN)}…` : value);
}

function adviceFor(name: string, file: string | undefined): string {
  const groups: Record<string, SettingText>[] = Object.values(SETTING_GROUPS);
  const fallback = groups.find((group) => Object.hasOwn(group, name))?.[name]?.fallback ?? literalDefault(name);
  const unset = fallback === "none" ? "" : ` (default: ${fallback.replaceAll("`", "")})`;
  return file === undefined ? `correct it or unset it${unset}` : `correct it in ${file} or unset ${name}_FILE${unset}`;
}

/** The default of a setting as the schema has it. */
function literalDefault(name: string): string {
  const [, value] = Object.entries(environment.parse({})).find(([key]) => key === name) ?? [];
  return typeof value === "string" || typeof value === "number" ? String(value) : "none";
}

/**
 * Returns where this process has a setting from: `environment`, the path of the file in `NAME_FILE`, or null if it is in
 * neither.
 */
export function sourceOfSetting(name: string, env: NodeJS.ProcessEnv = process.env): string | null {
  if ((env[name] ?? "") !== "") return "environment";
  return env[`${name}_FILE`] || null;
}

/** The text of a file that holds one secret, without white space around it. */
function readSecret(file: string): string {
  const { size } = statSync(file);
  if (size > LARGEST_SECRET) throw new Error(`${file} has ${size} bytes, more than ${LARGEST_SECRET}`);
  return readFileSync(file, "utf8").trim();
}

/**
 * The variables of this process, for `${VAR}` in houses.yaml: one of the environment, else the file that `VAR_FILE` names,
 * else the file `VAR` in the folder HOUSE_SECRETS_DIR. Files are read each time, so a changed token needs no restart.
 * @throws Error if a file cannot be read.
 */
export function variablesOf(env: NodeJS.ProcessEnv = process.env): Variables {
  return (name) => {
    const { [name]: given = "", [`${name}_FILE`]: named = "", HOUSE_SECRETS_DIR: folder = "" } = env;
    if (given !== "") return given;
    if (named !== "") return readSecret(named);
    const file = join(folder, name);
    return folder !== "" && existsSync(file) ? readSecret(file) : undefined;
  };
}

/** The folder that the public log is signed from: LOG_DIR, else `log` in DATA_DIR. */
export function logFolderOf({ LOG_DIR, DATA_DIR }: Pick<Settings, "LOG_DIR" | "DATA_DIR">): string {
  return LOG_DIR ?? join(DATA_DIR, "log");
}

/** Whether visitors use https, so that cookies are `Secure` and belong to this host alone. */
export function usesHttps({ PUBLIC_URL }: Pick<Settings, "PUBLIC_URL">): boolean {
  return PUBLIC_URL?.startsWith("https:") === true;
}

/** Whether npm runs this process in the foreground, by `npm start` or `npx roundhouse`, and waits for it. */
export function isRunByNpm(env: NodeJS.ProcessEnv = process.env): boolean {
  return ["start", "npx"].includes(env["npm_lifecycle_event"] ?? "");
}
