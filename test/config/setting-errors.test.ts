import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requireVariables } from "../../src/cli/run/deployment.ts";
import { loadSettings, SECRET_SETTINGS } from "../../src/config/environment.ts";
import { SETTING_GROUPS } from "../../src/config/settings-text.ts";
import { UsageError } from "../../src/errors.ts";

/** Expected, found, what to do. */
const FORM = /^expected [^;]+, found [^;]+; [a-z].+$/;
/** What only the libraries write. */
const LIBRARY = /NaN|Invalid|Too (?:small|big)|string|number received|>=|<=|regex|option/;
const SETTINGS = Object.values<Record<string, unknown>>(SETTING_GROUPS).flatMap((group) => Object.keys(group));

/** Wrong values of each setting; none if it takes any text. */
const WRONG: Record<string, string[]> = {
  DATABASE_URL: ["mysql://app:hunter2@db/x", "db"],
  DATABASE_DIRECT_URL: ["mysql://app:hunter2@db/x", "db"],
  DATABASE_READ_URL: ["mysql://app:hunter2@db/x", "db"],
  REDIS_URL: ["http://:hunter2@redis", "redis"],
  DATA_DIR: [],
  HOST: [],
  PORT: ["70000", "-1", "http", "1.5", " ", "0x1F90", "9".repeat(400)],
  WORKER_PORT: ["70000", "-1", "http", "1.5", "\t"],
  DRAIN_SECONDS: ["301", "-1", "5s", " "],
  PUBLIC_URL: [
    "roundhouse.example",
    "ftp://roundhouse.example",
    "https://roundhouse.example/app",
    "https://roundhouse.example/?x=1",
    "https://roundhouse.example/#top",
    "https://ann:hunter2@roundhouse.example",
  ],
  TRUSTED_PROXIES: ["true", "10.0.0.0/33"],
  LOG_LEVEL: ["loud"],
  OTEL_EXPORTER_OTLP_ENDPOINT: ["collector:4318", "ftp://user:hunter2@collector"],
  METRICS_TOKEN: ["hunter2"],
  HOUSES_FILE: [],
  LIVE_WINDOW_SECONDS: ["0", "86401", "soon", "1.5"],
  BUFFER_ROUNDS: ["0", "10001", "many", "1.5", "1e2"],
  PAYLOAD_RETENTION_HOURS: ["0", "8785", "2d", "1.5"],
  ALLOW_PRIVATE_HOUSES: ["yes"],
  HOUSE_NAME_SERVERS: ["dns.example"],
  HOUSE_SECRETS_DIR: [],
  DEMO_HOUSE_URL: ["https://demo.example", "demo"],
  AUTH_SECRET: ["hunter2"],
  AUTH_SECRET_PREVIOUS: [],
  OPS_REQUIRE_TWO_FACTOR: ["yes"],
  OPERATOR_NAME: [" ", "x".repeat(201)],
  HELPLINES_FILE: [],
  SMTP_URL: ["mail.example", "http://user:hunter2@mail.example"],
  MAIL_FROM: ["Rounds"],
  STAFF_WEBHOOK_URL: ["hunter2", `https://hooks.example/${"hunter2".repeat(300)}`],
  ALERT_EMAIL: ["ann", Array.from({ length: 11 }, (_, at) => `a${at}@example.com`).join(",")],
  LOG_DIR: [],
  LOG_WITNESSES: ["witness.example", "witness.example https://witness.example"],
  BANK_BENEFICIARY: [" ", "x".repeat(141), "two\nlines"],
  BANK_IBAN: ["hello", "DE8937040044053201300", "DE89370400440532013001", "DE893704004405320130ZZ"],
  BANK_BIC: ["bank"],
  BANK_NAME: [" ", "x".repeat(141), "two\nlines"],
  BANK_CURRENCIES: ["dollars"],
  BANK_ONE_PERSON: ["yes"],
  USDT_XPUB: ["xprvhunter2", "hunter2", `xpub${"2".repeat(107)}`],
  USDT_RPC_URLS: ["node.example", "https://a/hunter2,https://b/hunter2,https://c/hunter2"],
  USDT_CHAIN: ["tron"],
  USDT_CHAIN_ID: ["0", "mainnet"],
  USDT_TOKEN: ["0x12"],
  USDT_DECIMALS: ["37", "-1", "six"],
  USDT_CONFIRMATIONS: ["0", "100001", "some"],
  USDT_MIN: ["0", "five"],
  BINANCE_PAY_KEY: ["hunter2"],
  BINANCE_PAY_SECRET: ["hunter2"],
  BINANCE_PAY_URL: ["http://pay.example", "pay"],
};

function problemsOf(run: () => unknown): Record<string, string> {
  try {
    run();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const paths = error.problems.map((one) => one.path);
    expect(new Set(paths).size, paths.join()).toBe(paths.length); // one problem of each setting
    return Object.fromEntries(error.problems.map((one) => [one.path, one.message]));
  }
  throw new Error("expected a UsageError, nothing was thrown");
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "roundhouse-settings-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("an error of a setting", () => {
  it("is tried for every setting", () => {
    expect(Object.keys(WRONG).toSorted()).toEqual(SETTINGS.toSorted());
  });

  const wrong = Object.entries(WRONG).flatMap(([name, values]) => values.map((value) => ({ name, value })));
  it.each(wrong)("states what $name expects, what was found and what to do: $value", ({ name, value }) => {
    const problem = problemsOf(() => loadSettings({ [name]: value }))[name] ?? "";
    expect(problem).toMatch(FORM);
    expect(problem).not.toMatch(LIBRARY);
    expect(problem).not.toContain("hunter2");
    const isHidden = value.includes("@") || (SECRET_SETTINGS as readonly string[]).includes(name);
    const isLong = value.length > 60;
    // of these two only the wrong part is shown
    if (!["BANK_IBAN", "LOG_WITNESSES"].includes(name))
      expect(problem.includes(JSON.stringify(value))).toBe(!isHidden && !isLong);
  });

  it.each([
    [
      "BUFFER_ROUNDS",
      "many",
      'expected a whole number from 1 to 10000, found "many"; correct it or unset it (default: 200)',
    ],
    [
      "METRICS_TOKEN",
      "short",
      "expected at least 16 characters, such as `openssl rand -hex 16` gives, found 5 characters (a secret, not shown); correct it or unset it",
    ],
    [
      "ALLOW_PRIVATE_HOUSES",
      "yes",
      'expected on, true or 1, or off, false or 0, found "yes"; correct it or unset it (default: off)',
    ],
  ])("of %s=%s names bounds and default", (name, value, text) => {
    expect(problemsOf(() => loadSettings({ [name]: value }))).toEqual({ [name]: text });
  });

  it("names the file if the value is in one", () => {
    const file = path.join(folder, "token");
    writeFileSync(file, "hunter2\n");
    const problem = problemsOf(() => loadSettings({ METRICS_TOKEN_FILE: file }))["METRICS_TOKEN"];
    expect(problem).toMatch(FORM);
    expect(problem).toContain(`correct it in ${file} or unset METRICS_TOKEN_FILE`);
    expect(problem).not.toContain("hunter2");
  });

  it.each([
    ["missing", "nothing"],
    ["a folder", "."],
  ])("has the same form for a file that is %s", (_, name) => {
    const problem = problemsOf(() => loadSettings({ METRICS_TOKEN_FILE: path.join(folder, name) }));
    expect(problem["METRICS_TOKEN_FILE"]).toMatch(FORM);
  });

  it.each([
    { DATABASE_READ_URL: "postgres://app@db/x" },
    { DATABASE_DIRECT_URL: "postgres://app@db/x" },
    { BANK_BENEFICIARY: "Roundhouse Ltd" },
    { BANK_IBAN: "DE89370400440532013000" },
    { USDT_RPC_URLS: "https://node.example" },
    { USDT_CHAIN: "custom" },
    { USDT_DECIMALS: "6" },
    { BINANCE_PAY_KEY: "k".repeat(20) },
    { BINANCE_PAY_SECRET: "s".repeat(20) },
    { METRICS_TOKEN: "m".repeat(20), METRICS_TOKEN_FILE: "token" },
  ])("has the same form for settings that do not fit together: %o", (settings) => {
    for (const problem of Object.values(problemsOf(() => loadSettings(settings)))) expect(problem).toMatch(FORM);
  });

  it("has the same form for a server that a part of a deployment needs", () => {
    const problems = problemsOf(() => requireVariables(loadSettings({}), ["DATABASE_URL", "REDIS_URL"]));
    expect(problems).toEqual({
      DATABASE_URL: expect.stringMatching(FORM) as unknown,
      REDIS_URL: expect.stringMatching(FORM) as unknown,
    });
  });
});
