import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { entryOf, type TableStatement } from "../../../src/record/log/statements.ts";
import { bundleBytes, checkRecord, type Facts, honestFacts, makeRecord, makeSigner, TABLE } from "./made-record.ts";

/** A statement about the table after every 25 of 900 rounds, each after 40 entries about something else. */
function longFacts(change: Partial<Facts> = {}): Facts {
  const statedAt = Array.from({ length: 36 }, (_, at) => 25 * (at + 1));
  return { ...honestFacts(900), statedAt, others: 40, accuracyAfter: 12, ...change };
}

/** The number of entries up to the statement after 750 rounds, which is kept: 350 rounds were public for certain. */
const KEPT_SIZE = 1 + 30 * 41 + 1;
/** The bundle with the statement after 300 rounds, which is before the accuracy: the others before it are skipped. */
const START = Math.floor((1 + 12 * 41 - 1) / 256);

const pem = makeSigner();
const honest = makeRecord(longFacts(), { pem, rowsPerPage: 1_000 });

async function keep(note: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "kept-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "kept.txt");
  await writeFile(file, note);
  return file;
}

const optionsOf = async (note = honest.checkpointAt(KEPT_SIZE)) => [
  "--kept",
  await keep(note),
  "--since-kept",
  "--table",
  TABLE,
];

/** The record of an operator who states something else about the table after a number of rounds. */
const contradicting = (rounds: number) =>
  makeRecord(
    longFacts({
      change(statement: TableStatement) {
        if (statement.round_seq === String(rounds)) statement.history_hash = "a".repeat(64);
      },
    }),
    { pem, rowsPerPage: 1_000 },
  );

describe("a check since a kept checkpoint", () => {
  test("reads no older entries than those that were not compared when it was kept", async (context) => {
    const paths: string[] = [];
    const hook = ({ url = "" }: { url?: string | undefined }) => {
      paths.push(url);
      return false;
    };
    const found = await checkRecord(honest, { options: await optionsOf(), hook });
    if (found === null) return context.skip("python3 is not installed");
    expect(found).toMatchObject({ code: 0, stderr: "" });
    expect(found.stdout).toContain(`of which those from ${256 * START} on were read`);
    expect(found.stdout).toMatch(/; 30 statements and 2 accuracy rows up to round 300 follow from the exports/);
    expect(found.stdout).toMatch(/; statements before round 175 were not read;/);
    const bundles = paths.filter((path) => path.startsWith("/log/tile/entries/"));
    expect(bundles).toContain("/log/tile/entries/000.p/1");
    expect(bundles).not.toContain("/log/tile/entries/000");
  });

  test("of the log alone reads hashes, and the entries after it", async (context) => {
    const paths: string[] = [];
    const options = (await optionsOf()).slice(0, 3);
    const hook = ({ url = "" }: { url?: string | undefined }) => paths.push(url) < 0;
    const found = await checkRecord(honest, { options, hook });
    if (found === null) return context.skip("python3 is not installed");
    expect(found).toMatchObject({ code: 0, stderr: "" });
    expect(paths.filter((path) => path.startsWith("/log/tile/entries/"))).toEqual([
      "/log/tile/entries/000.p/1",
      "/log/tile/entries/004",
      expect.stringMatching(/^\/log\/tile\/entries\/005\.p\/\d+$/),
    ]);
  });

  test.each([
    { claim: "not public when it was kept", rounds: 500 },
    { claim: "made since", rounds: 800 },
  ])("names a statement that the exports contradict and that was $claim", async ({ rounds }) => {
    const record = contradicting(rounds);
    const found = await checkRecord(record, { options: await optionsOf(record.checkpointAt(KEPT_SIZE)) });
    expect(found ?? { code: 1 }).toMatchObject({ code: 1 });
    expect(found?.stderr ?? `rounds ${rounds}`).toContain(`rounds ${rounds}`);
  });

  test("names a log that does not begin with it", async () => {
    const kept = contradicting(25).checkpointAt(KEPT_SIZE);
    const found = await checkRecord(honest, { options: await optionsOf(kept) });
    expect(found ?? { code: 1 }).toMatchObject({ code: 1 });
    if (found !== null) expect(found.stderr).toContain("expected the log to grow from the kept checkpoint");
  });

  test("leaves older statements to a check of the whole log", async () => {
    const record = contradicting(25);
    const options = await optionsOf(record.checkpointAt(KEPT_SIZE));
    expect((await checkRecord(record, { options }))?.code ?? 0).toBe(0);
    expect((await checkRecord(record, { options: ["--table", TABLE] }))?.code ?? 1).toBe(1);
  });

  test("leaves rows of accuracy that were stated before what is read to a check of the whole log", async () => {
    const laterAccuracy = { upTo: 75, features: ["next_color"] };
    const facts = longFacts({ others: 300, accuracyAfter: 2, laterAccuracy });
    const record = makeRecord(facts, { pem, rowsPerPage: 1_000 });
    const found = await checkRecord(record, { options: await optionsOf(record.checkpointAt(1 + 30 * 301 + 2)) });
    expect(found ?? { code: 0 }).toMatchObject({ code: 0 });
    expect(found?.stdout ?? "1 was stated before what was read").toContain("1 was stated before what was read");
    expect((await checkRecord(record, { options: ["--table", TABLE] }))?.code ?? 1).toBe(1);
  });

  test("of a young table begins with the first entry", async () => {
    const record = makeRecord(honestFacts());
    const found = await checkRecord(record, { options: await optionsOf(record.checkpointAt(4)) });
    expect(found ?? { code: 0 }).toMatchObject({ code: 0 });
    expect(found?.stdout ?? "").not.toContain("were read");
  });

  test("names a server that sends other entries to the search for the first one", async () => {
    const statement = (rounds: number, score: string) =>
      Buffer.from(
        entryOf({
          kind: "table",
          table: TABLE,
          round_seq: String(rounds),
          history_hash: score,
          on_time_rounds: String(rounds),
          forecast_seq: "0",
          forecast_hash: score,
          score_hash: score,
          revision_hash: score,
          calibration: "",
          calibration_hash: "",
        }),
      );
    const invented = [statement(1, "0".repeat(64)), statement(900, "0".repeat(64))];
    let reads = 0;
    const found = await checkRecord(honest, {
      options: await optionsOf(),
      hook({ url = "" }, response) {
        if (!url.startsWith("/log/tile/entries/004") || reads++ > 0) return false;
        response.writeHead(200).end(bundleBytes(invented));
        return true;
      },
    });
    expect(found ?? { code: 1 }).toMatchObject({ code: 1 });
    if (found !== null) expect(found.stderr).toContain("the server sent two versions of an entry");
  });

  test("keeps the checkpoint that it read, with its time, if everything is right", async (context) => {
    const file = await keep(honest.checkpointAt(KEPT_SIZE));
    const options = ["--kept", file, "--since-kept", "--table", TABLE, "--keep", file];
    const wrong = await checkRecord(contradicting(800), { options });
    if (wrong === null) return context.skip("python3 is not installed");
    expect(wrong).toMatchObject({ code: 1 });
    expect(await readFile(file, "utf8")).toBe(honest.checkpointAt(KEPT_SIZE));
    const before = Date.now();
    expect(await checkRecord(honest, { options })).toMatchObject({ code: 0 });
    expect(await readFile(file, "utf8")).toBe(honest.checkpoint);
    expect((await stat(file)).mtimeMs).toBeGreaterThan(before - 1);
    expect(await checkRecord(honest, { options })).toMatchObject({ code: 0 });
    const nowhere = await checkRecord(honest, { options: ["--keep", join(file, "nowhere")] });
    expect(nowhere).toMatchObject({ code: 2, stderr: expect.stringContaining("no checkpoint is kept") as string });
  });

  test("requires a kept checkpoint", async () => {
    const found = await checkRecord(honest, { options: ["--since-kept"] });
    expect(found ?? { code: 2 }).toMatchObject({ code: 2 });
    if (found !== null) expect(found.stderr).toContain("expected --kept FILE with --since-kept, found none");
  });

  test("is suggested before a million entries are read", async () => {
    const found = await checkRecord(honest, { options: [], constants: { MANY_ENTRIES: 1_000 } });
    expect(found ?? { code: 0 }).toMatchObject({ code: 0 });
    if (found !== null)
      expect(found.stderr).toMatch(
        /^reads 1478 entries about all tables, .* --since-kept reads only those after a kept/,
      );
  });
});
