import { describe, expect, it } from "vitest";
import { houseSettings } from "../../src/houses/settings/settings.ts";
import type { House } from "../../src/houses/house.ts";
import { readBody, type ReceivedBody } from "../../src/rounds/read-response.ts";
import { QuarantinedItem, quarantinedItem } from "../../src/rounds/lists/quarantined-item.ts";
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

/** Reads a body, and counts the ticks of the event loop meanwhile. */
async function readWatched(house: House, given: ReceivedBody, options: { isSuspect?: boolean } = {}) {
  const { result: read, ticks } = await countTicks(() => readBody(house, NAME, given, { signal, ...options }));
  return { read, ticks };
}

describe("a stored payload", () => {
  const house = houseOf({});
  it("is read in a thread, whatever it contains", async () => {
    const good = await readWatched(house, received('{"rounds":[{"id":1,"multiplier":1.10}]}'), { isSuspect: true });
    expect(good.read).toMatchObject({ ok: true, items: [{ ok: true, round: { roundId: "1", hundredths: 110 } }] });
    expect(good.ticks).toBeGreaterThan(0);
    const bad = await readWatched(house, received("<html>"), { isSuspect: true });
    expect(bad.read).toMatchObject({ ok: false, reason: expect.stringContaining("HTML") });
  });

  it("on which its reader fails reports it, and the next is read", async () => {
    const broken = houseOf({});
    Object.assign(broken.settings.tables[0]!, { adapter: "none" });
    const read = await readBody(broken, NAME, received("{}"), { signal, isSuspect: true });
    expect(read).toMatchObject({ ok: false, reason: expect.stringMatching(/^our own code failed/) });
    expect((await readBody(house, NAME, received('{"rounds":[]}'), { signal, isSuspect: true })).ok).toBe(true);
  });

  it("is abandoned when its reader is aborted", async () => {
    const stopped = AbortSignal.abort(new Error("stopped"));
    await expect(readBody(house, NAME, received("{}"), { signal: stopped, isSuspect: true })).rejects.toThrow(
      "stopped",
    );
  });

  it("gives raw items as quarantine keeps them, the same from a thread", async () => {
    const body = received(`{"rounds":[{"id":1,"multiplier":0.10},{"id":2,"multiplier":"${"x".repeat(20_000)}"}]}`);
    const [there, here] = await Promise.all([
      readBody(house, NAME, body, { signal, isSuspect: true }),
      readBody(house, NAME, body, { signal }),
    ]);
    if (!there.ok || !here.ok) throw new Error("expected both to be read");
    for (const item of there.items) expect(item.raw).toBeInstanceOf(QuarantinedItem);
    expect(there.items.map(({ raw }) => raw)).toEqual(here.items.map(({ raw }) => quarantinedItem(raw)));
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
      if (!read.ok) expect(read.reason).not.toContain("given up");
      most = Math.max(most, ticks);
    }
    expect(most).toBeGreaterThan(1);
  });
});
