import { mkdtemp, readFile, rm, utimes, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { checkRecord, honestFacts, makeRecord, makeSigner, runScript, SCRIPT, TABLE } from "./made-record.ts";

const HOUR_MS = 3_600_000;

/** Writes a kept checkpoint; three hours old by default. */
async function keep(note: string, hoursAgo = 3): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "kept-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "kept.txt");
  await writeFile(file, note);
  const at = (Date.now() - hoursAgo * HOUR_MS) / 1_000;
  await utimes(file, at, at);
  return file;
}

describe("a server that is busy or restarts", () => {
  /** Responds to the first reads of the rounds with the given ones. */
  const failing = (...responses: ((response: ServerResponse) => void)[]) => ({
    options: ["--table", TABLE],
    hook: ({ url = "" }: { url?: string | undefined }, response: ServerResponse) => {
      const fail = url.includes("/export/rounds/") ? responses.shift() : undefined;
      fail?.(response);
      return fail !== undefined;
    },
  });
  const status =
    (code: number, headers = {}) =>
    (response: ServerResponse) =>
      void response.writeHead(code, headers).end();
  const broken = (response: ServerResponse) => void response.destroy();
  const cut = (response: ServerResponse) => {
    response.writeHead(200, { "Content-Length": 99 });
    response.write("seq", () => response.destroy());
  };

  test.each([
    { claim: "a 503 with the time to wait", responses: [status(503, { "Retry-After": "5" })], waits: "wait 5\n" },
    { claim: "a 429 with a long time to wait", responses: [status(429, { "Retry-After": "900" })], waits: "wait 60\n" },
    { claim: "a 502 and a 504", responses: [status(502), status(504)], waits: "wait 1\nwait 2\n" },
    { claim: "a connection that breaks", responses: [broken], waits: "wait 1\n" },
    { claim: "a response that breaks", responses: [cut], waits: "wait 1\n" },
  ])("is asked again after $claim", async ({ responses, waits }) => {
    const found = await checkRecord(makeRecord(honestFacts()), failing(...responses));
    if (found === null) return;
    expect(found).toMatchObject({ code: 0, stdout: expect.stringMatching(new RegExp(`^${waits}ok: `)) as string });
  });

  test.each([
    { claim: "a 503", response: status(503), found: "the status 503" },
    { claim: "broken connections", response: broken, found: "Remote end closed connection without response" },
    { claim: "a part of a response", response: cut, found: "3 of 99 bytes" },
  ])("is unavailable, and not wrong, if it only sends $claim", async ({ response, found: text }) => {
    const found = await checkRecord(makeRecord(honestFacts()), failing(...Array.from({ length: 9 }, () => response)));
    if (found === null) return;
    expect(found).toMatchObject({ code: 3, stdout: "wait 1\nwait 2\nwait 4\nwait 8\n" });
    expect(found.stderr).toMatch(/^UNAVAILABLE: expected a response from .*; try again later\n$/);
    expect(found.stderr).toContain(text);
  });

  test("is unavailable if it has another error, which is not repeated", async () => {
    const found = await checkRecord(makeRecord(honestFacts()), failing(status(500)));
    expect(found ?? { code: 3, stdout: "" }).toMatchObject({ code: 3, stdout: "" });
  });

  test("is unavailable if no process listens", async () => {
    const found = await runScript("http://127.0.0.1:9");
    if (found === null) return;
    expect(found).toMatchObject({ code: 3, stderr: expect.stringMatching(/^UNAVAILABLE: .*refused.*\n$/) as string });
  });
});

describe("what a user can mistake", () => {
  test.each([
    { claim: "an unknown table", options: ["--table", "alpha/crash/nowhere"], text: "which neither the log nor" },
    { claim: "a table in another form", options: ["--table", "alpha"], text: "expected a table as HOUSE/GAME/MARKET" },
    {
      claim: "a file that does not exist",
      options: ["--kept", "/no/such/file"],
      text: "expected a kept checkpoint in",
    },
  ])("is reported in a sentence: $claim", async ({ options, text }) => {
    const found = await checkRecord(makeRecord(honestFacts()), { options });
    if (found === null) return;
    expect(found).toMatchObject({ code: 2, stderr: expect.stringContaining(text) as string });
    expect(found.stderr).not.toContain("Traceback");
  });

  test.each(["", '{"error":{"code":"temporarily_unavailable"}}', "a\n\n\n— b !\n"])(
    "is reported in a sentence: a kept file with the text %j",
    async (text) => {
      const file = await keep(text);
      const found = await checkRecord(makeRecord(honestFacts()), { options: ["--kept", file] });
      if (found === null) return;
      expect(found).toMatchObject({ code: 2, stderr: expect.stringContaining(`kept checkpoint in ${file}`) as string });
      expect(found.stderr).not.toContain("Traceback");
    },
  );
});

describe("responses in another form than documented", () => {
  const send =
    (part: string, body: string, headers = {}) =>
    ({ url = "" }: { url?: string | undefined }, response: ServerResponse) => {
      if (!url.includes(part)) return false;
      response.writeHead(200, headers).end(body);
      return true;
    };

  test.each([
    { claim: "a page instead of a key", hook: send("/log/key", "<html></html>"), text: "in the form that" },
    { claim: "an empty bundle", hook: send("/tile/entries/", ""), text: "expected the tiles to hold" },
    { claim: "other columns", hook: send("/export/rounds/", "seq\n1\n"), text: "in the form that" },
    {
      claim: "the same page again",
      hook: send("/export/rounds/", "seq\n", { Link: `</log/export/rounds/${TABLE}>; rel="next"` }),
      text: "expected another page",
    },
    {
      claim: "a page of another server",
      hook: send("/export/rounds/", "seq\n", { Link: '<@other.example/log>; rel="next"' }),
      text: "expected another page",
    },
  ])("are wrong: $claim", async ({ hook, text }) => {
    const found = await checkRecord(makeRecord(honestFacts()), { options: ["--table", TABLE], hook });
    if (found === null) return;
    expect(found).toMatchObject({ code: 1, stderr: expect.stringContaining(text) as string });
    expect(found.stderr).toMatch(/^WRONG: /);
  });
});

describe("a limit of the script", () => {
  test.each([
    { name: "MOST_PAGES", value: 2, text: `at most 2 pages of /log/export/rounds/${TABLE}` },
    { name: "MOST_BYTES", value: 200, text: "at most 200 bytes" },
  ])("is reported as a limit, and not as wrong: $name", async ({ name, value, text }) => {
    const options = ["--table", TABLE];
    const found = await checkRecord(makeRecord(honestFacts()), { options, constants: { [name]: value } });
    if (found === null) return;
    expect(found).toMatchObject({ code: 5, stdout: "", stderr: expect.stringContaining(text) as string });
    expect(found.stderr).toMatch(/^LIMIT: .* nothing was found wrong, .* the rest is not checked; .*\n$/);
    expect(found.stderr).toContain(name);
  });

  test("of pages is above what a table with a set per second has in ten years", async () => {
    const [, pages = ""] = /^MOST_PAGES = ([\d_]+)/m.exec(await readFile(SCRIPT, "utf8")) ?? [];
    const setsPerPage = 500;
    expect(Number(pages.replaceAll("_", "")) * setsPerPage).toBeGreaterThan(10 * 366 * 86_400);
  });
});

describe("a declared log", () => {
  const REASON = "restored from the backup of 2026-11-22";
  const pem = makeSigner();
  const first = makeRecord(honestFacts(), { pem });
  const declared = (previous: string, key = pem) =>
    makeRecord({ ...honestFacts(), log: { previous, reason: REASON } }, { pem: key, number: 2 });

  test("is reported with its reason without a kept checkpoint too", async () => {
    const found = await checkRecord(declared(first.checkpoint));
    if (found === null) return;
    expect(found).toMatchObject({ code: 0, stderr: "" });
    expect(found.stdout).toContain(
      `another log was declared: "${REASON}"; it names the previous log ${first.origin} at 5 entries`,
    );
  });

  test("whose own checkpoint was kept is reported like any other", async () => {
    const record = declared(first.checkpoint);
    const found = await checkRecord(record, { options: ["--kept", await keep(record.checkpointAt(2))] });
    expect(found ?? { code: 0 }).toMatchObject({ code: 0 });
  });

  test.each([
    { claim: "the kept checkpoint", record: declared(first.checkpoint), size: 5, text: "which is the kept checkpoint" },
    { claim: "a larger one", record: declared(first.checkpoint), size: 4, text: "1 more than the kept checkpoint" },
    {
      claim: "the kept checkpoint of another key",
      record: declared(first.checkpoint, makeSigner()),
      size: 5,
      text: "which is the kept checkpoint",
    },
    {
      claim: "another log",
      record: declared(makeRecord(honestFacts()).checkpoint),
      size: 5,
      text: "whether it is complete cannot be checked",
    },
  ])("is reported apart from what is wrong if it names $claim", async ({ record, size, text }) => {
    const options = ["--kept", await keep(first.checkpointAt(size)), "--table", TABLE];
    const found = await checkRecord(record, { options });
    if (found === null) return;
    expect(found).toMatchObject({ code: 4, stdout: expect.stringMatching(/^ok: /) as string });
    expect(found.stderr).toMatch(
      new RegExp(`^DECLARED: another log was declared: "${REASON}"; it names .*${text}.*\n$`),
    );
  });

  const other = makeRecord(honestFacts(9), { pem });
  test.each([
    { claim: "fewer entries than were kept", previous: first.checkpointAt(4), text: "it was shortened" },
    { claim: "another root of the same size", previous: other.checkpoint, text: "found another root" },
    {
      claim: "a checkpoint that its key did not sign",
      previous: first.checkpoint.replace("\n5\n", "\n6\n"),
      text: "signed",
    },
    { claim: "no log before", previous: "", text: "cannot be checked", code: 4 },
  ])("is wrong if it names $claim", async ({ previous, text, code = 1 }) => {
    const found = await checkRecord(declared(previous), { options: ["--kept", await keep(first.checkpoint)] });
    if (found === null) return;
    expect(found).toMatchObject({ code, stderr: expect.stringContaining(text) as string });
  });

  test("does not excuse another log that declares nothing", async () => {
    const another = makeRecord(honestFacts());
    for (const [hoursAgo, code] of [
      [3, 1],
      [0, 3],
    ] as const) {
      const found = await checkRecord(another, { options: ["--kept", await keep(first.checkpoint, hoursAgo)] });
      expect(found ?? { code }).toMatchObject({ code });
    }
  });

  test("whose first entry has commands of a terminal is shown with escapes", async () => {
    const facts = { ...honestFacts(), log: { previous: first.checkpoint, reason: "\u001b[2Jrestored" } };
    const found = await checkRecord(makeRecord(facts, { pem, number: 2 }));
    expect(found?.stdout ?? "\\u001b[2Jrestored").toContain("\\u001b[2Jrestored");
    expect(found?.stdout ?? "").not.toContain("\u001b");
  });
});

describe("a log and exports of many rows", () => {
  test("are read in the memory of one page", async () => {
    const facts = honestFacts(6_000);
    facts.statedAt = [8, ...Array.from({ length: 240 }, (_, at) => 25 * (at + 1))];
    const record = makeRecord(facts, { rowsPerPage: 2_000 });
    const found = await checkRecord(record, { options: ["--table", TABLE], isMeasured: true });
    if (found === null) return;
    expect(found).toMatchObject({ code: 0 });
    expect(found.kilobytes).toBeLessThan(12_000);
  });
});
