import { Writable } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { reasonOf } from "../src/errors.ts";
import { createLog, withoutPassword, type Log } from "../src/log.ts";
import { hideSecrets } from "../src/secrets.ts";
import { listExamples, runExample } from "./support/examples.ts";

const SECRET = "hunter2hunter2";

/** What a log writes: each call adds its lines. */
function written(use: (log: Log) => void, terminal = false): string {
  const lines: string[] = [];
  const output = new Writable({
    write(chunk, _, done) {
      lines.push(String(chunk));
      done();
    },
  });
  use(createLog("debug", terminal, output));
  return lines.join("");
}

describe("[LOGS][V16] what is logged", () => {
  it("never holds the password of a server's URL", () => {
    expect(withoutPassword("postgres://app:hunter2@db:5432/x")).toBe("postgres://app:***@db:5432/x");
    expect(withoutPassword("redis://:hunter2@cache:6379")).toBe("redis://:***@cache:6379");
    expect(withoutPassword("postgres://db/x")).toBe("postgres://db/x");
    expect(withoutPassword("postgres://app:p@ss@db:5432/x?a=b@c")).toBe("postgres://app:***@db:5432/x?a=b@c");
    expect(withoutPassword("redis://default:1#s@h:6379")).toBe("redis://default:***@h:6379");
    expect(withoutPassword("redis://default:1?s@h:6379/0?a=b@c")).toBe("redis://default:***@h:6379/0?a=b@c");
    expect(withoutPassword("redis+sentinel://:a@b/main?sentinel_password=hunter2")).toBe(
      "redis+sentinel://:***@b/main?sentinel_password=[redacted]",
    );
  });

  it("names the causes of an error on one line", () => {
    const error = new Error("the feed cannot be read", { cause: new Error("unexpected end of JSON input") });
    expect(reasonOf(error)).toBe("the feed cannot be read: unexpected end of JSON input");
    expect(reasonOf("plain")).toBe("plain");
  });

  it.each<[string, (log: Log) => void]>([
    ["a field", (log) => log.info({ password: SECRET }, "x")],
    ["a nested field", (log) => log.info({ a: { b: { c: { d: { client_secret: SECRET } } } } }, "x")],
    ["a field in capitals", (log) => log.info({ METRICS_TOKEN: SECRET }, "x")],
    ["a field written as one word", (log) => log.info({ PGPASSWORD: SECRET, accessToken: SECRET }, "x")],
    ["a hash of one, or backup codes", (log) => log.info({ passwordHash: SECRET, backup_codes: [SECRET] }, "x")],
    ["a phrase in a text", (log) => log.info({ body: JSON.stringify({ password: `five rare ${SECRET}` }) }, "x")],
    ["all that is inside a secret field", (log) => log.info({ credentials: 1, token: { a: [SECRET] } }, "x")],
    ["a header", (log) => log.info({ headers: { "X-Api-Key": SECRET, Authorization: `Bearer ${SECRET}` } }, "x")],
    ["a list of headers", (log) => log.info({ headers: { "set-cookie": [`a=${SECRET}; HttpOnly`] } }, "x")],
    ["a field bound to a child", (log) => log.child({ cookie: SECRET }).info("x")],
    ["the message", (log) => log.info(`asked with authorization: Bearer ${SECRET}`)],
    ["a URL with a user", (log) => log.info({ url: `redis://default:${SECRET}@cache:6379/0` }, "x")],
    ["a URL with a password that has an @", (log) => log.info(`redis://default:a@${SECRET}@cache:6379/0 is away`)],
    ["a URL with a password that has a #", (log) => log.info(`redis://default:1#${SECRET}@cache:6379/0 is away`)],
    ["a URL with a password that has a ?", (log) => log.info({ url: `redis://default:1?${SECRET}@cache:6379` }, "x")],
    ["a URL with a token that has a # for a user", (log) => log.info(`cloned https://1#${SECRET}0123@example.com/x`)],
    ["a URL with a token for a user", (log) => log.info(`cloned https://${SECRET}0123@example.com/x`)],
    ["a parameter of a URL", (log) => log.info({ url: `https://house.example/rounds?a=1&api_key=${SECRET}&b=2` }, "x")],
    ["JSON in a text", (log) => log.info({ body: JSON.stringify({ password: SECRET }) }, "x")],
    ["JSON in JSON in a text", (log) => log.info({ body: JSON.stringify(JSON.stringify({ token: SECRET })) }, "x")],
    ["an error", (log) => log.error({ err: new Error(`postgres://a:${SECRET}@db/x is away`) }, "x")],
    [
      "the cause of an error",
      (log) => {
        const cause = Object.assign(new Error(`?token=${SECRET}`), { password: SECRET, headers: { cookie: SECRET } });
        log.error({ err: new Error("failed", { cause: new Error("again", { cause }) }) }, "x");
      },
    ],
    ["what belongs to an error", (log) => log.error(Object.assign(new Error("x"), { options: { passwd: SECRET } }))],
    ["a caller's key anywhere", (log) => log.info({ path: `/api/rh_live_${SECRET}/x` }, `rh_live_${SECRET}`)],
  ])("never holds a secret in %s", (_, use) => {
    for (const terminal of [false, true]) {
      const text = written(use, terminal);
      expect(text).not.toBe("");
      expect(text).not.toContain(SECRET);
    }
  });

  it("never holds the value of a field with a secret's name, wherever it is", () => {
    const names = fc.constantFrom(
      "password",
      "db_password",
      "newPassword",
      "authSecret",
      "Authorization",
      "x-api-key",
      "api_key",
      "token",
      "secret",
    );
    const value = fc.string({ minLength: 6 }).map((text) => `§${text}`);
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 5 },
        fc.tuple(names, value).map(([name, secret]) => ({ [name]: secret })),
        fc.array(tie("tree"), { maxLength: 3 }),
        fc.dictionary(fc.string(), tie("tree"), { maxKeys: 3 }),
      ),
    }));
    fc.assert(
      fc.property(tree, (data) => {
        expect(written((log) => log.info({ data }, "x"))).not.toContain("§");
      }),
      { numRuns: 200 },
    );
  });

  it("is unchanged if nothing must be hidden, also if the word has another meaning", () => {
    const line =
      '{"level":30,"key":"7","last4":"Ab12","msg":"the fencing token is 3; expected an api key, got none"}\n';
    expect(hideSecrets(line)).toBe(line);
    expect(hideSecrets("not JSON, but token=abc\n")).toBe("not JSON, but token=[redacted]\n");
  });

  it("is one line of JSON each, or one readable line each on a terminal", () => {
    const use = (log: Log) => {
      log.info({ queue: "poll-house", counts: { requests: 1 }, traces: ["payload-7"] }, "done");
      log.warn("second");
    };
    const lines = written(use).trimEnd().split("\n");
    expect(lines.map((line): unknown => JSON.parse(line))).toMatchObject([{ msg: "done" }, { msg: "second" }]);
    const readable = written(use, true).trimEnd().split("\n");
    expect(readable).toHaveLength(2);
    expect(readable[0]).toContain("payload-7");
  });
});

describe("examples", () => {
  it.each(listExamples("src/secrets.ts"))("of $title hold", async (example) => {
    const exports: Record<string, unknown> = { ...(await import("../src/secrets.ts")) };
    for (const { line, actual, expected } of runExample(example, exports)) expect(actual, line).toEqual(expected);
  });
});
