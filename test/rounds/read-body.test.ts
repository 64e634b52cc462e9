import { hash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { houseSettings } from "../../src/houses/settings/settings.ts";
import type { House } from "../../src/houses/house.ts";
import {
  LARGEST_HERE,
  readBody,
  readStored,
  type PackedBody,
  type ReceivedBody,
} from "../../src/rounds/read-response.ts";
import { quarantinedItem } from "../../src/rounds/lists/quarantined-item.ts";
import { ThreadBusyError } from "../../src/thread.ts";
import { feedEntry, houseEntry, tableEntry } from "../support/houses.ts";
import { countTicks } from "../support/ticks.ts";

const MIB = 1 << 20;
const NAME = { name: "alpha/crash/global", game: "crash", market: "global" };
const { signal } = new AbortController();

/** A house whose only table is read like this. */
function houseOf(changed: Record<string, unknown>): House {
  const headers = { "customer-id": "a", "session-id": "b" }; // Lucky Jet insists on them
  const settings = houseSettings.parse(houseEntry({ headers, tables: [tableEntry(changed)] }).entry);
  return { id: "alpha", settings, baseUrl: null, hide: (text) => text };
}

function received(body: string, path = "/rounds"): ReceivedBody {
  return { body: Buffer.from(body), now: "2026-11-21T04:00:12.1234560Z", path, kind: "poll" };
}

function packed(body: string): PackedBody {
  const bytes = Buffer.from(body);
  return {
    body: gzipSync(bytes),
    sha256: hash("sha256", bytes),
    receivedAt: "2026-11-21T04:00:12.1234560Z",
    path: "/",
  };
}

const readable = (id: number) => packed(`{"rounds":[{"id":${id},"multiplier":1.10}]}`);
const roundOf = (id: number) => ({ ok: true, items: [{ ok: true, round: { roundId: String(id), hundredths: 110 } }] });

/** Reads stored payloads. */
async function readAll(house: House, given: readonly PackedBody[]) {
  return (await readStored(house, NAME, given, signal)).map((items) => items());
}

/** Reads a body, and counts the ticks of the event loop meanwhile. */
async function readWatched(house: House, given: ReceivedBody) {
  const { result: read, ticks } = await countTicks(() => readBody(house, NAME, given, { signal }));
  return { read, ticks };
}

describe("stored payloads", () => {
  const house = houseOf({});
  it("are read together in a thread, in their order", async () => {
    const given = [readable(1), packed("<html>"), readable(2)];
    const refused = { ok: false, reason: expect.stringContaining("HTML") };
    let most = 0;
    for (let time = 0; time < 10 && most < 1; time += 1) {
      const { result: read, ticks } = await countTicks(() => readAll(house, given));
      expect(read).toMatchObject([roundOf(1), refused, roundOf(2)]);
      most = Math.max(most, ticks);
    }
    expect(most).toBeGreaterThan(0);
  });

  it("are refused when their bytes are not what was received, and the others are read", async () => {
    const [changed, broken] = [
      { ...readable(1), sha256: "0".repeat(64) },
      { ...readable(2), body: Buffer.from("x") },
    ];
    expect(await readAll(house, [changed, broken, readable(3)])).toMatchObject([
      { ok: false, reason: expect.stringContaining("its hash does not match") },
      { ok: false, reason: expect.stringMatching(/^our own code failed/) },
      roundOf(3),
    ]);
  });

  it("report that their reader failed, and the next are read", async () => {
    const broken = houseOf({});
    Object.assign(broken.settings.tables[0]!, { adapter: "none" });
    const [read] = await readAll(broken, [readable(1)]);
    expect(read).toMatchObject({ ok: false, reason: expect.stringMatching(/^our own code failed/) });
    expect(await readAll(house, [readable(1)])).toMatchObject([roundOf(1)]);
  });

  it("are read one by one when they cannot be read together: only the one that fails is refused", async () => {
    const unsendable = { ...readable(2), path: Symbol("no thread takes it") as unknown as string };
    expect(await readAll(house, [readable(1), unsendable, readable(3)])).toMatchObject([
      roundOf(1),
      { ok: false, reason: expect.stringMatching(/^our own code failed/) },
      roundOf(3),
    ]);
  });

  it("are abandoned when their reader is aborted", async () => {
    const stopped = AbortSignal.abort(new Error("stopped"));
    await expect(readStored(house, NAME, [readable(1)], stopped)).rejects.toThrow("stopped");
  });

  it("have raw items as quarantine stores them, the same as of a body", async () => {
    const body = `{"rounds":[{"id":1,"multiplier":0.10},{"id":2,"multiplier":"${"x".repeat(20_000)}"}]}`;
    const [[there], here] = await Promise.all([
      readAll(house, [packed(body)]),
      readBody(house, NAME, received(body), { signal }),
    ]);
    if (there?.ok !== true || !here.ok) throw new Error("expected both to be read");
    const rawOf = ({ raw }: { raw: unknown }) => {
      const { item, itemSha256 } = quarantinedItem(raw);
      return { item, itemSha256 };
    };
    expect(there.items.map(rawOf)).toEqual(here.items.map(rawOf));
    const [, long] = JSON.parse(body).rounds as unknown[];
    expect(there.items.map(rawOf)[1]?.itemSha256).toBe(hash("sha256", JSON.stringify(long)));
  });
});

describe("[PARSERS] the largest response made to be slow", () => {
  const fill = (text: string) => text.repeat(Math.floor((4 * MIB - 200) / text.length));
  const list = (item: string, before: string, after: string) => `${before}${fill(`${item},`)}${item}${after}`;
  const page = { first_round_id: 5 };
  it.each<[string, object, string, string?]>([
    ["roobet", {}, list('{"id":1,"crashPoint":1.10}', "[", "]")],
    ["roobet", {}, list("1.10", "[", "]")],
    ["roobet", {}, list("1.10", '[{"id":1,"crashPoint":1.10,"x":[', "]}]")],
    ["roobet", {}, list("[]", '[{"id":1,"crashPoint":1.10,"x":[', "]}]")],
    ["roobet", {}, "[".repeat(4 * MIB)],
    ["roobet", {}, fill("1")],
    ["lucky-jet", {}, list('{"hash":"a","topCoefficient":"1.10"}', "[", "]")],
    ["stake", {}, list('{"id":1,"crashpoint":1.10,"hash":{}}', '{"data":{"crashGameList":[', "]}}")],
    ["bcgame", {}, list('{"gameId":1,"gameDetail":"{\\"rate\\":1.10}"}', '{"data":{"list":[', "]}}")],
    ["bcgame", {}, `{"data":{"list":[{"gameId":1,"gameDetail":"[${fill("1.10,")}1]"}]}}`],
    ["blaze", {}, list('{"id":1}', "[", "]")],
    [
      "json",
      feedEntry({ items: "rounds[?multiplier > `1`]" }),
      list('{"id":1,"multiplier":1.10}', '{"rounds":[', "]}"),
    ],
    ["ethcrash-io", page, `{"game_crash":${fill("1")}}`, "/game/5.json"],
    ["bustabit", page, `game 5 ${fill("1x ")}`, "/game/5"],
    ["bustabit", page, fill("game 5 "), "/game/5"],
    ["bustabit", page, fill("<script></script>"), "/game/5"],
    ["bustabit", page, fill("<!--"), "/game/5"],
    ["bustabit", page, fill("busted  at "), "/game/5"],
    ["bustabit", page, fill("1,"), "/game/5"],
    ["ethercrash", {}, fill("<a "), "/play"],
    ["ethercrash", {}, fill('<a class="games-log-x" href="/game/7">1x</a>'), "/play"],
    ["ethercrash", page, fill("Game 5 | "), "/game/5"],
    ["ethercrash", page, fill("ago on "), "/game/5"],
  ])("of %s (%#) is read to its end, while other work runs", async (adapter, feed, body, path) => {
    // a thread may be done before the first tick; a read in the event loop blocks it
    let most = 0;
    for (let time = 0; time < 10 && most < 2; time += 1) {
      const { read, ticks } = await readWatched(houseOf({ adapter, feed }), received(body, path));
      if (!read.ok && read.reason.startsWith("reading was stopped")) continue; // a busy machine; at most ten times
      most = Math.max(most, ticks);
    }
    expect(most).toBeGreaterThan(1);
  });
});

it("a large body is not refused because too many others wait for the thread", async () => {
  const controller = new AbortController();
  const large = received("<".repeat(LARGEST_HERE + 1));
  const read = () => readBody(houseOf({}), NAME, large, { signal: controller.signal });
  const waiting = Array.from({ length: 1_000 }, read);
  await expect(read()).rejects.toThrow(ThreadBusyError);
  controller.abort(new Error("seen"));
  await Promise.allSettled(waiting);
});
