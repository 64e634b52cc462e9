import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { reasonOf } from "../../src/errors.ts";
import { findings } from "../../src/demo/replay/describe.ts";
import { wireFormats } from "../../src/demo/replay/formats.ts";
import { readRecordedRounds, recordedRounds } from "../../src/demo/replay/rounds-file.ts";
import { scheduleOf } from "../../src/demo/replay/schedule.ts";

const HASH = "ab".repeat(32);

async function makeFile(content: string | Buffer): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "roundhouse-replay-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = path.join(folder, "rounds.csv");
  await writeFile(file, content);
  return file;
}

describe("a file of recorded rounds", () => {
  test("has its columns in any order, others between them, and times with or without a zone", () => {
    const text = `hash,game,occurred_at,multiplier,Round_ID\n${HASH.toUpperCase()},a,2026-01-05T09:30:00.250Z,1234.50,7\n,b,2026-01-05 09:30:01,0.00,8`;
    expect(recordedRounds(text)).toEqual({
      rounds: [
        {
          id: "7",
          multiplier: "1234.50",
          hundredths: 123_450,
          occurredMs: Date.UTC(2026, 0, 5, 9, 30, 0, 250),
          hash: HASH,
        },
        { id: "8", multiplier: "0.00", hundredths: 100, occurredMs: Date.UTC(2026, 0, 5, 9, 30, 1), hash: null },
      ],
      hasRowNumbers: false,
      hasClock: true,
      missed: 0,
    });
  });

  test("without ids has its rows counted, and a missing value stays a round", () => {
    const { rounds, ...others } = recordedRounds("multiplier,round_id\r\n1.5,\r\n,\r\n\r\n2,\r\n");
    expect(others).toEqual({ hasRowNumbers: true, hasClock: false, missed: 1 });
    expect(rounds.map(({ id, hundredths }) => [id, hundredths])).toEqual([
      ["1", 150],
      ["2", null],
      ["3", 200],
    ]);
  });

  test("may have quotes, and may be packed", async () => {
    const text = 'round_id,note,multiplier\n"a,1","said ""x""",1.9999\n';
    const plain = await readRecordedRounds(await makeFile(text));
    expect(plain.rounds).toMatchObject([{ id: "a,1", multiplier: "1.9999", hundredths: 199 }]);
    expect(await readRecordedRounds(await makeFile(gzipSync(text)))).toEqual(plain);
  });

  test.each([
    ["an empty file", "", "found an empty file"],
    ["a header alone", "round_id,multiplier\n", "expected rounds below the header, found none"],
    [
      "another header",
      "id;result\n1;2\n",
      'line 1: expected a header with multiplier and maybe round_id, occurred_at, hash (house, game and others are left aside), found "id;result"',
    ],
    ["a column twice", "multiplier,multiplier\n1,2\n", "with multiplier twice"],
    ["a row too short", "round_id,multiplier\n1,2\n3\n", "line 3: expected 2 fields as in the header, found 1"],
    [
      "a value that is none",
      "multiplier\n1.5\n2.29 1.29\n",
      'line 3: expected a multiplier such as 1.87, 0 for an instant crash, or nothing where it was missed; found "2.29 1.29"',
    ],
    ["a value as a page shows it", "multiplier\n1.5x\n", 'found "1.5x"'],
    ["a value below one", "multiplier\n0.5\n", "line 2: expected a multiplier such as 1.87, 0 for"],
    [
      "a wrong time",
      "multiplier,occurred_at\n1.5,4/11/2024\n",
      'line 2: expected a time such as 2026-03-17T15:09:55Z, found "4/11/2024"',
    ],
    [
      "a time on some rows",
      "multiplier,occurred_at\n1.5,\n2,2026-03-17T15:09:55Z\n",
      "line 3: expected a time on every row or on none",
    ],
    ["an id on some rows", "round_id,multiplier\n1,1.5\n,2\n", "line 3: expected an id on every row or on none"],
    [
      "an id twice",
      "round_id,multiplier\n1,1.5\n2,2\n1,1.5\n",
      'line 4: expected each id once, found "1", which line 2 has',
    ],
    ["a wrong hash", `multiplier,hash\n1.5,${HASH}0\n`, "line 2: expected a hash of 64 hexadecimal digits"],
  ])("with %s is refused, naming the line", (_, text, expected) => {
    expect(() => recordedRounds(text)).toThrow(expected);
  });

  test.each([
    ["bytes that are no text", Buffer.from([0x80, 0xff]), "expected UTF-8 text or a gzip of it"],
    ["a damaged gzip", gzipSync("multiplier\n1.5\n").subarray(0, 12), "unexpected end of file"],
  ])("of %s is refused with its name", async (_, content, expected) => {
    const file = await makeFile(content);
    const error: unknown = await readRecordedRounds(file).catch((caught: unknown) => caught);
    expect(reasonOf(error)).toContain(`${file} cannot be replayed: ${expected}`);
  });
});

test.each([
  ["round_id,multiplier,occurred_at\n1,1.5,2026-01-05\n2,2,2026-01-05\n", "blaze", []],
  ["multiplier\n1.5\n", "stake", [/no ids: rounds are called by the number of their row/, /no clock: .* every 24 s/]],
  [
    "round_id,multiplier\n1,1.5\n2,\n4,2\n",
    "bustabit",
    [/no clock/, /^1 rounds have no multiplier/, /missing at 1 places.*--number-rows/],
  ],
  ["round_id,multiplier\n1,1.5\n4,2\n", "json", [/no clock/]],
])("what a file lacks is reported: %j as %s", (text, as, expected) => {
  const format = wireFormats.get(as);
  if (format === undefined) throw new Error(`there is no format ${as}`);
  const said = findings({ file: "rounds.csv", format, recorded: recordedRounds(text), speed: 1 });
  expect(said).toEqual(expected.map((one) => expect.stringMatching(one)));
});

describe("a schedule", () => {
  const clocked = recordedRounds(
    "multiplier,occurred_at\n1,2026-01-05T00:00:00Z\n1,2026-01-05T00:00:20Z\n1,2026-01-05T00:00:10Z\n1,2026-01-05T00:01:00Z\n",
  ).rounds;
  const startMs = 1_000_000;

  test("plays rounds as far apart as they were recorded, divided by the speed", () => {
    const { countPublished, publishedAtMs: toldAtMs } = scheduleOf(clocked, {
      startMs,
      from: 0,
      speed: 20,
      usualMs: 1,
    });
    expect([0, 1, 2, 3].map((place) => toldAtMs(place) - startMs)).toEqual([0, 1_000, 1_000, 3_000]);
    expect([0, 999, 1_000, 2_999, 3_000, 9_999].map((ms) => countPublished(startMs + ms))).toEqual([1, 1, 3, 3, 4, 4]);
  });

  test("keeps the time of a clock that steps back, and the order of the file", () => {
    const { timeOf } = scheduleOf(clocked, { startMs, from: 0, speed: 1, usualMs: 1 });
    expect([0, 1, 2, 3].map((place) => timeOf(place) - startMs)).toEqual([0, 20_000, 10_000, 60_000]);
  });

  test("begins at any round, those before it being history already, and never has none", () => {
    const {
      countPublished,
      publishedAtMs: toldAtMs,
      timeOf,
    } = scheduleOf(clocked, { startMs, from: 2, speed: 1, usualMs: 1 });
    expect([startMs - 1e9, startMs, startMs + 49_999, startMs + 50_000].map((ms) => countPublished(ms))).toEqual([
      3, 3, 3, 4,
    ]);
    expect(toldAtMs(2)).toBeLessThanOrEqual(startMs);
    expect([0, 1, 2, 3].map((place) => timeOf(place) - startMs)).toEqual([-10_000, 10_000, 0, 50_000]);
  });

  test("without a recorded clock goes by the usual time of the game", () => {
    const { rounds } = recordedRounds("multiplier\n1\n2\n3\n");
    const { publishedAtMs: toldAtMs } = scheduleOf(rounds, { startMs, from: 1, speed: 2, usualMs: 24_900 });
    expect([1, 2].map((place) => toldAtMs(place) - startMs)).toEqual([0, 12_450]);
  });
});
