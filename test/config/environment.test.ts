import { loadHouses } from "../../src/houses-file/load.ts";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadSettings, SECRET_SETTINGS, usesHttps, variablesOf } from "../../src/config/environment.ts";
import { UsageError } from "../../src/errors.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "roundhouse-config-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const TABLE = `
      - game: crash
        market: global
        feed: { path: /rounds, items: rounds, round_id: id, multiplier: multiplier }
        round_ids: consecutive
        colors: [ {name: blue, below: 2}, {name: purple, below: 10}, {name: pink} ]`;

function load(text: string, variables: Record<string, string> = {}, allowPrivate = false) {
  const file = path.join(folder, "houses.yaml");
  writeFileSync(file, text);
  return loadHouses(file, (name) => variables[name], { allowPrivate });
}

function problemsOf(run: () => unknown): Record<string, string> {
  try {
    run();
  } catch (error) {
    if (error instanceof UsageError) return Object.fromEntries(error.problems.map((one) => [one.path, one.message]));
    throw error;
  }
  throw new Error("expected a UsageError, nothing was thrown");
}

describe("the environment", () => {
  it("has defaults for everything", () => {
    expect(loadSettings({})).toMatchObject({
      DATA_DIR: ".roundhouse",
      HOST: "127.0.0.1",
      PORT: 3000,
      WORKER_PORT: 3001,
      LIVE_WINDOW_SECONDS: 300,
      BUFFER_ROUNDS: 200,
      PAYLOAD_RETENTION_HOURS: 48,
      ALLOW_PRIVATE_HOUSES: false,
    });
  });

  it.each([
    ["DATABASE_DIRECT_URL", "postgres://app@db/roundhouse", "DATABASE_URL"],
    ["DATABASE_READ_URL", "postgres://app@db/roundhouse", "DATABASE_URL"],
    ["BANK_BENEFICIARY", "Roundhouse Ltd", "BANK_IBAN"],
    ["BANK_IBAN", "DE89 3704 0044 0532 0130 00", "BANK_BENEFICIARY"],
    ["USDT_RPC_URLS", "https://node.example", "USDT_XPUB"],
    ["BINANCE_PAY_KEY", "k".repeat(20), "BINANCE_PAY_SECRET"],
    ["BINANCE_PAY_SECRET", "s".repeat(20), "BINANCE_PAY_KEY"],
  ])("refuses %s alone, which has no use without another setting", (name, value, other) => {
    expect(problemsOf(() => loadSettings({ [name]: value }))).toEqual({
      [name]: expect.stringContaining(`expected ${other} too, found it not set; set both, or neither`) as unknown,
    });
  });

  it.each([
    ["https://rounds.example", "https://rounds.example"],
    ["https://rounds.example/", "https://rounds.example"],
    ["HTTPS://Rounds.example", "https://rounds.example"],
    [" https://rounds.example:8443 ", "https://rounds.example:8443"],
    ["http://[::1]:3000", "http://[::1]:3000"],
  ])("reads PUBLIC_URL %j as the origin %s, and whether it is of https from that", (text, origin) => {
    const settings = loadSettings({ PUBLIC_URL: text });
    expect(settings.PUBLIC_URL).toBe(origin);
    expect(usesHttps(settings)).toBe(origin.startsWith("https:"));
  });

  it("reads each secret from a file that NAME_FILE names, without the line's end", () => {
    const good: Partial<Record<(typeof SECRET_SETTINGS)[number], string>> = {
      DATABASE_URL: "postgres://app:geheim@db/roundhouse",
      DATABASE_DIRECT_URL: "postgres://app:geheim@db/roundhouse",
      REDIS_URL: "redis://:geheim@redis:6379",
      AUTH_SECRET: "s".repeat(40),
      AUTH_SECRET_PREVIOUS: "t".repeat(40),
      METRICS_TOKEN: "m".repeat(20),
      SMTP_URL: "smtp://user:geheim@mail.example:587",
    };
    const files = Object.entries(good).map(([name, value]) => {
      const file = path.join(folder, name);
      writeFileSync(file, `${value}\n`);
      return [`${name}_FILE`, file];
    });
    expect(loadSettings(Object.fromEntries(files) as NodeJS.ProcessEnv)).toMatchObject(good);
  });

  it.each(SECRET_SETTINGS)("refuses %s both given and in a file, in a file that is missing or too large", (name) => {
    const file = path.join(folder, "secret");
    const problem = (env: NodeJS.ProcessEnv) => problemsOf(() => loadSettings(env))[`${name}_FILE`];
    expect(problem({ [name]: "geheim", [`${name}_FILE`]: file })).toBe(
      `expected either it or ${name}, found both; remove one`,
    );
    expect(problem({ [`${name}_FILE`]: path.join(folder, "nothing") })).toContain("no such file");
    writeFileSync(file, " \n");
    expect(loadSettings({ [`${name}_FILE`]: file })[name]).toEqual(loadSettings({})[name]); // empty: not set
    writeFileSync(file, "x".repeat(70_000));
    expect(problem({ [`${name}_FILE`]: file })).toContain(`${file} has 70000 bytes, more than 65536`);
  });

  it("finds a variable of the houses file in the environment, else in the file that VAR_FILE names, else in HOUSE_SECRETS_DIR", () => {
    const file = path.join(folder, "token");
    writeFileSync(file, "from-a-file\n");
    expect(variablesOf({ TOKEN: "given", TOKEN_FILE: file })("TOKEN")).toBe("given");
    expect(variablesOf({ TOKEN: "", TOKEN_FILE: file })("TOKEN")).toBe("from-a-file");
    expect(variablesOf({})("TOKEN")).toBeUndefined();
    const inFolder = variablesOf({ HOUSE_SECRETS_DIR: folder });
    writeFileSync(path.join(folder, "ACME_TOKEN"), "first\n");
    expect(inFolder("ACME_TOKEN")).toBe("first");
    writeFileSync(path.join(folder, "ACME_TOKEN"), "second\n");
    expect([inFolder("ACME_TOKEN"), inFolder("OTHER_TOKEN")]).toEqual(["second", undefined]);
    const houses = path.join(folder, "houses.yaml");
    writeFileSync(
      houses,
      `houses: [{ id: a, name: A, base_url: "https://a.example", headers: { X-Token: "\${TOKEN}" }, tables: [] }]`,
    );
    const missing = variablesOf({ TOKEN_FILE: path.join(folder, "nothing") });
    expect(Object.values(problemsOf(() => loadHouses(houses, missing, { allowPrivate: false })))).toContainEqual(
      expect.stringContaining("the file that TOKEN_FILE names cannot be used"),
    );
  });

  it("counts an empty variable as not set", () => {
    expect(loadSettings({ PORT: "", DATABASE_URL: "" })).toMatchObject({ PORT: 3000 });
  });

  it("trusts no proxy but those that are given, as addresses or networks", () => {
    expect(loadSettings({}).TRUSTED_PROXIES).toEqual([]);
    expect(loadSettings({ TRUSTED_PROXIES: "10.0.0.0/8, 192.0.2.1,2001:db8::/32" }).TRUSTED_PROXIES).toEqual([
      "10.0.0.0/8",
      "192.0.2.1",
      "2001:db8::/32",
    ]);
    for (const wrong of [
      "true",
      "1",
      "proxy.example",
      "10.0.0.0/33",
      "0.0.0.0/0",
      "10.0.0.1/8/8",
      "10.0.0.1,",
      "10.0.0.0/",
    ]) {
      expect(() => loadSettings({ TRUSTED_PROXIES: wrong })).toThrow(UsageError);
    }
  });

  it("lists every wrong variable together and repeats no secret", () => {
    const secret = "mysql://app:hunter2@db/x";
    const run = () => loadSettings({ DATABASE_URL: secret, PORT: "70000", LOG_LEVEL: "loud", BUFFER_ROUNDS: "many" });
    expect(Object.keys(problemsOf(run))).toEqual(["DATABASE_URL", "PORT", "BUFFER_ROUNDS", "LOG_LEVEL"]);
    expect(run).toThrow(/expected a URL that begins with postgres/);
    expect(run).not.toThrow(/hunter2/);
  });
});

describe("houses.yaml", () => {
  it("fills in defaults and keeps the entry as written", () => {
    const [house] = load(
      `houses:\n  - id: acme\n    name: Acme\n    base_url: https://acme.example\n    headers: { X-Token: "\${TOKEN}" }\n    tables:${TABLE}`,
      { TOKEN: "s3cret" },
    );
    expect(house?.settings).toMatchObject({ poll_every_ms: 2000, timeout_ms: 5000, headers: { "X-Token": "s3cret" } });
    expect(house?.settings.tables[0]).toMatchObject({ pause_ms: 5000, adapter: "json", enabled: true });
    expect(JSON.stringify(house?.entry)).toContain("${TOKEN}");
    expect(JSON.stringify(house?.entry)).not.toContain("s3cret");
  });

  it("lists every problem together, each with its path", () => {
    const problems = problemsOf(() =>
      load(`houses:
  - id: Bad Id
    name: x
    base_url: ftp://acme.example
    pol_every_ms: 500
    headers: { A: "\${UNSET_ONE}" }
    tables:${TABLE}
      - game: crash
        market: global
        feed: { path: rounds, items: "[", round_id: id, multiplier: m }
        round_ids: sometimes
        colors: [ {name: blue, below: 10}, {name: purple, below: 2}, {name: pink} ]
  - id: second
    name: no address
    tables: []
  - id: third
    name: 3
    base_url: http://acme.example
    headers: { "X Y": a, Z: "two\\nlines" }
    tables:${TABLE}${TABLE}
  - id: fourth
    name: fourth
    base_url: https://ann:hunter2@acme.example
    tables:${TABLE}`),
    );
    expect(problems).toMatchObject({
      "houses[0].id": expect.stringContaining("lower case"),
      "houses[0].base_url": expect.stringContaining("http"),
      "houses[0].headers.A": expect.stringContaining("UNSET_ONE"),
      "houses[0].tables[1].feed.path": expect.stringContaining("begins with /"),
      "houses[0].tables[1].feed.items": expect.stringContaining("JMESPath"),
      "houses[0].tables[1].round_ids": expect.any(String),
      "houses[0].tables[1].colors[1].below": expect.stringContaining("overlap"),
      "houses[0].tables[1]": "the table Bad Id/crash/global is already tables[0]",
      "houses[1].tables": expect.any(String),
      "houses[2].name": expect.any(String),
      "houses[2].base_url": expect.stringContaining("expected https"),
      "houses[2].headers.X Y": expect.stringContaining("header name"),
      "houses[2].headers.Z": expect.stringContaining("one line"),
      "houses[2].tables[1]": "the table third/crash/global is already tables[0]",
      "houses[3].base_url": expect.stringContaining("no user and password"),
    });
    expect(JSON.stringify(problems)).toContain("pol_every_ms");
    expect(JSON.stringify(problems)).not.toContain("hunter2");
  });

  it("refuses the same table twice and the same house twice", () => {
    const house = (id: string, tables: string) =>
      `\n  - id: ${id}\n    name: x\n    base_url: https://a.example\n    tables:${tables}`;
    const problems = problemsOf(() => load(`houses:${house("one", TABLE + TABLE)}${house("one", TABLE)}`));
    expect(problems["houses[0].tables[1]"]).toBe("the table one/crash/global is already tables[0]");
    expect(problems["houses[1].id"]).toContain("already the id of houses[0]");
  });

  it("allows private and http addresses only with ALLOW_PRIVATE_HOUSES", () => {
    const text = `houses:\n  - id: a\n    name: a\n    private: true\n    base_url: http://127.0.0.1:4010\n    tables:${TABLE}`;
    expect(problemsOf(() => load(text))["houses[0].base_url"]).toContain("ALLOW_PRIVATE_HOUSES");
    expect(load(text, {}, true)).toHaveLength(1);
    const plain = text.replace("    private: true\n", "");
    expect(problemsOf(() => load(plain, {}, true))["houses[0].base_url"]).toContain("https");
  });

  it("names the line that is not YAML, and reports a file that cannot be read", () => {
    expect(() => load("houses:\n  - id: [")).toThrow(/line \d+:/);
    expect(() => load("")).toThrow(/the file: .*expected object/);
    expect(() => loadHouses(path.join(folder, "none.yaml"), () => undefined, { allowPrivate: false })).toThrow(
      /none\.yaml cannot be read/,
    );
  });
});
