import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { makeDemoHouse, makeFolder, readBustabit, START_MS, T0_MS } from "./world.ts";

type House = Awaited<ReturnType<typeof makeDemoHouse>>;

const STRETCH = { t0: "2026-11-21T03:56:40.000Z", speed: 1, since: "2026-11-21T04:00:00.000Z" };

async function timesOf(house: House, limit = 200): Promise<Map<number, number>> {
  const answer = await readBustabit(await house.get(`/bustabit/rounds?limit=${limit}`));
  return new Map(answer.rounds.map(({ id, created_at }) => [id, Date.parse(created_at)]));
}

const newestOf = async (house: House): Promise<number> => Math.max(...(await timesOf(house)).keys());

describe("a demo house that is started again", () => {
  it("continues as if it had never stopped", async () => {
    const first = await makeDemoHouse();
    await first.close();
    const clock = { nowMs: START_MS + 3_600_500 };
    const second = await makeDemoHouse({ clock, dataDir: first.dataDir });
    expect(await newestOf(second)).toBe(3_800);
    expect((await timesOf(second)).get(3_800)).toBe(T0_MS + 3_800_000);
    expect(second.said).toEqual([]);
  });

  it("stores T0 and speed in readable form", async () => {
    const { dataDir } = await makeDemoHouse({ dataDir: path.join(await makeFolder(), "not", "yet", "there") });
    expect(JSON.parse(await readFile(path.join(dataDir, "demo-house.json"), "utf8"))).toEqual({
      t0: new Date(T0_MS).toISOString(),
      speed: 1,
      since: new Date(START_MS).toISOString(),
      earlier: [],
    });
  });

  it("continues its numbers at another speed, and listed games keep their times", async () => {
    const clock = { nowMs: START_MS };
    const slow = await makeDemoHouse({ clock });
    clock.nowMs += 10_300;
    const told = await timesOf(slow);
    await slow.close();

    const fast = await makeDemoHouse({ clock, dataDir: slow.dataDir, speed: 7 });
    expect(fast.said).toEqual([expect.stringContaining("speed 7 instead of 1")]);
    expect(await timesOf(fast)).toEqual(told);
    clock.nowMs += 100; // the game running at the change had 0.7 s left: at speed 7 a tenth of a second
    expect(await newestOf(fast)).toBe(211);
    clock.nowMs += 10_000;
    expect(await newestOf(fast)).toBe(281);
    const toldFast = await timesOf(fast);
    const stillListed = [...told].filter(([id]) => toldFast.has(id));
    expect(stillListed.length).toBeGreaterThan(100);
    expect(stillListed.map(([id]) => toldFast.get(id))).toEqual(stillListed.map(([, ms]) => ms));
    await fast.close();

    const slowAgain = await makeDemoHouse({ clock, dataDir: slow.dataDir, speed: 0.5 });
    expect(await timesOf(slowAgain)).toEqual(toldFast);
    clock.nowMs += 20_000;
    expect(await newestOf(slowAgain)).toBe(291);
    const sorted = [...(await timesOf(slowAgain))].toSorted(([a], [b]) => a - b).map(([, ms]) => ms);
    expect(sorted).toEqual(sorted.toSorted((a, b) => a - b));
  });

  it.each([
    ["half a file", '{"t0": "2026-11'],
    ["an empty file", ""],
    ["a list", "[]"],
    ["a wrong time", '{"t0":"yesterday","speed":1,"since":"2026-11-21T04:00:00.000Z","earlier":[]}'],
    ["no speed", '{"t0":"2026-11-21T04:00:00.000Z","speed":0,"since":"2026-11-21T04:00:00.000Z","earlier":[]}'],
    [
      "stretches out of order",
      JSON.stringify({ ...STRETCH, earlier: [{ ...STRETCH, since: "2026-11-22T04:00:00.000Z" }] }),
    ],
  ])("refuses %s in place of demo-house.json, names it, and leaves it as it is", async (_, contents) => {
    const dataDir = await makeFolder();
    const file = path.join(dataDir, "demo-house.json");
    await writeFile(file, contents);
    await expect(makeDemoHouse({ dataDir })).rejects.toThrow(`${file} is not what the demo house wrote there`);
    expect(await readFile(file, "utf8")).toBe(contents);
  });

  it("advises what to do if the file cannot be read or the folder cannot be written", async () => {
    const unreadable = await makeFolder();
    await mkdir(path.join(unreadable, "demo-house.json"));
    await expect(makeDemoHouse({ dataDir: unreadable })).rejects.toThrow(/demo-house\.json.* cannot be read/);
    const file = path.join(await makeFolder(), "a-file");
    await writeFile(file, "");
    await expect(makeDemoHouse({ dataDir: path.join(file, "below") })).rejects.toThrow(/cannot be (read|written)/);
  });

  it("continues when its clock was set back and its speed changed", async () => {
    const clock = { nowMs: START_MS };
    const first = await makeDemoHouse({ clock });
    clock.nowMs -= 50_000;
    const second = await makeDemoHouse({ clock, dataDir: first.dataDir, speed: 2 });
    expect(await newestOf(second)).toBe(150);
    clock.nowMs += 50_000;
    const third = await makeDemoHouse({ clock, dataDir: first.dataDir, speed: 2 });
    expect(await newestOf(third)).toBe(250);
  });

  it("reports that its clock is before T0, and has no rounds until then", async () => {
    const first = await makeDemoHouse();
    const early = await makeDemoHouse({ clock: { nowMs: T0_MS - 60_000 }, dataDir: first.dataDir });
    expect(early.said).toEqual([expect.stringMatching(/begins at 2026-11-21T03:56:40.000Z.*delete/)]);
    expect(await timesOf(early)).toEqual(new Map());
  });
});

describe("a demo house that cannot start", () => {
  it("names the port that is taken and what to do", async () => {
    const { port } = await makeDemoHouse();
    await expect(makeDemoHouse({ port })).rejects.toThrow(
      `the demo house cannot listen on 127.0.0.1:${port}: the port is taken; stop what listens there`,
    );
  });

  it.each([0, -1, 1001, Number.NaN])("refuses the speed %f", async (speed) => {
    await expect(makeDemoHouse({ speed })).rejects.toThrow("expected a speed from 0.01 to 1000");
  });

  it("refuses a seed that is no whole number", async () => {
    await expect(makeDemoHouse({ seed: 1.5 })).rejects.toThrow("expected a whole number as seed");
  });
});

it("a closed demo house serves no one, and closing twice is fine", async () => {
  const house = await makeDemoHouse();
  expect((await house.get("/")).status).toBe(200);
  await house.close();
  await house.close();
  await expect(house.get("/")).rejects.toThrow("fetch failed");
});
