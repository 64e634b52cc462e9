import { generateKeyPairSync } from "node:crypto";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  ConnectionError,
  DeclaredLogError,
  InconsistentLogError,
  Roundhouse,
  StaleLogError,
  type Checkpoint,
  type ClientOptions,
} from "../../clients/typescript/src/index.ts";
import { parseTilePath } from "../../src/record/log/tile-path.ts";
import { growTiles, leafHash, rootOf } from "../../src/record/log/tree.ts";
import { signCheckpoint, signerOf, verifierKeyText } from "../../src/signed-note.ts";
import { mth } from "../record/log/rfc6962.ts";

const MINUTE = 60_000;

function entriesOf(log: string, size = 120): Buffer[] {
  return Array.from({ length: size }, (_, at) => Buffer.from(`${log} ${at}`));
}

function checkpointOf(entries: readonly Buffer[]): Checkpoint {
  return { size: entries.length, root: mth(entries).toString("base64") };
}

/** The hashes of a log's tiles by level and number. */
function tilesOf(entries: readonly Buffer[]): ReadonlyMap<string, Buffer> {
  return new Map(growTiles([], entries.map(leafHash)).map(({ level, n, hashes }) => [`${level}/${n}`, hashes]));
}

function noteOf({ size, root, origin = "log" }: Checkpoint): Response {
  return new Response(noteText(origin, { size, root }));
}

function noteText(origin: string, { size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${root}\n\n— ${origin} AAAA\n`;
}

/** Entries in the form of a tile: each after its length. */
function bundleOf(entries: readonly Buffer[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(
    Buffer.concat(entries.flatMap((entry) => [Buffer.of(entry.length >> 8, entry.length & 255), entry])),
  );
}

interface PublicLog {
  entries: readonly Buffer[];
  /** The checkpoints that responses of the API state, one after the other. */
  shown?: Checkpoint[];
  /** The checkpoints that `/log/checkpoint` serves, one after the other; then that of all entries. */
  served?: Checkpoint[];
  mayRead?: Promise<undefined>;
  options?: Partial<ClientOptions>;
}

/** A client of a log, its waits, and the paths below `/log/` that it read. `instead` replaces the response of a path. */
async function clientOfLog({ entries, shown = [], served = [], mayRead, options }: PublicLog) {
  const tiles = tilesOf(entries);
  const root = await rootOf((level, n) => Promise.resolve(tiles.get(`${level}/${n}`)!), entries.length);
  const whole = { size: entries.length, root: root.toString("base64") };
  const read: string[] = [];
  const waits: number[] = [];
  const instead = new Map<string, () => Response>();
  const api = new Roundhouse({
    url: "http://127.0.0.1",
    key: "k",
    async fetch(request) {
      const [, path] = new URL(request.url).pathname.split("/log/");
      if (path === undefined) {
        const seen = shown.shift()!;
        return Response.json({ games: [] }, { headers: { "X-Log-Checkpoint": `${seen.size} ${seen.root}` } });
      }
      read.push(path);
      const other = instead.get(path);
      if (other !== undefined) return other();
      if (path === "checkpoint") {
        await mayRead;
        return noteOf(served.shift() ?? whole);
      }
      const { level, n, width } = parseTilePath(path.slice("tile/".length))!;
      if (level === "entries") return new Response(bundleOf(entries.slice(n * 256, n * 256 + width)));
      return new Response(new Uint8Array(tiles.get(`${level}/${n}`)!.subarray(0, width * 32)));
    },
    wait(seconds) {
      waits.push(seconds);
      return Promise.resolve();
    },
    ...options,
  });
  return { api, read, waits, instead };
}

afterEach(() => vi.useRealTimers());

describe("a check of the public log", () => {
  it("refuses a log that showed a fork between two of its checkpoints", async () => {
    const [own, fork] = [entriesOf("own"), entriesOf("fork")];
    const forked = [own.slice(0, 100), fork.slice(0, 110), own].map(checkpointOf);
    const { api } = await clientOfLog({ entries: own, shown: forked });
    for (let call = 0; call < 3; call++) await api.games();
    await expect(api.checkLog()).rejects.toThrow(InconsistentLogError);
    await expect(api.checkLog()).rejects.toThrow(InconsistentLogError);

    const shown = [own.slice(0, 100), own.slice(0, 110), own].map(checkpointOf);
    const { api: honest } = await clientOfLog({ entries: own, shown });
    for (let call = 0; call < 3; call++) await honest.games();
    expect(await honest.checkLog()).toMatchObject(checkpointOf(own));
  });

  it("accepts a log that grows while its checkpoint is read", async () => {
    const own = entriesOf("own");
    const hasGrown = Promise.withResolvers<undefined>();
    const shown = [own.slice(0, 100), own].map(checkpointOf);
    const { api } = await clientOfLog({ entries: own.slice(0, 110), shown, mayRead: hasGrown.promise });
    await api.games();
    const checked = api.checkLog();
    await api.games();
    hasGrown.resolve(undefined);
    expect(await checked).toMatchObject(checkpointOf(own.slice(0, 110)));
    expect(api.checkpoint).toMatchObject(checkpointOf(own));
  });

  it("continues a failed check of the log from the checkpoint that it could not prove", async () => {
    const own = entriesOf("own", 600);
    const shown = [100, 300, 520].map((size) => checkpointOf(own.slice(0, size)));
    const { api, read, instead } = await clientOfLog({ entries: own, shown });
    for (let call = 0; call < 3; call++) await api.games();
    instead.set("tile/0/001", () => new Response("", { status: 503 }));
    await expect(api.checkLog()).rejects.toThrow(ConnectionError);
    expect(read).toContain("tile/0/000");
    instead.clear();
    read.length = 0;
    expect(await api.checkLog()).toMatchObject(checkpointOf(own));
    expect(read).toContain("tile/0/001");
    expect(read).not.toContain("tile/0/000");
  });

  it("checks the log with at most 110 requests, however many checkpoints it has seen", async () => {
    const own = entriesOf("own", 46_000);
    const tiles = tilesOf(own);
    const sizes = Array.from({ length: 150 }, (_, call) => 1_001 + call * 300);
    const shown = await Promise.all(
      sizes.map(async (size) => {
        const root = await rootOf((level, n) => Promise.resolve(tiles.get(`${level}/${n}`)!), size);
        return { size, root: root.toString("base64") };
      }),
    );
    const { api, read } = await clientOfLog({ entries: own, shown });
    for (let call = 0; call < 150; call++) await api.games({ house: ["beta"] });
    expect(await api.checkLog()).toMatchObject({ size: 46_000 });
    expect(read.length).toBeLessThanOrEqual(110);
    expect(read).toContain("tile/0/003");
  });

  it("names a key that is none, such as the error of a log that has not begun", async () => {
    const { api } = await clientOfLog({ entries: entriesOf("own"), options: { logKey: '{"error":{}}' } });
    await expect(api.checkLog()).rejects.toThrow(/^expected the text of \/log\/key as logKey, got /);
  });

  it("is not deceived by a proxy's page in place of the checkpoint or a tile", async () => {
    const own = entriesOf("own", 600);
    const { api, instead } = await clientOfLog({ entries: own, shown: [checkpointOf(own.slice(0, 300))] });
    await api.games();
    for (const path of ["checkpoint", "tile/0/001"]) {
      instead.set(path, () => new Response("<html>".repeat(2_000)));
      await expect(api.checkLog()).rejects.toThrow(ConnectionError);
      instead.clear();
    }
    expect(await api.checkLog()).toMatchObject(checkpointOf(own));
  });
});

describe("a check of the public log while one process is behind another", () => {
  const own = entriesOf("own");
  const at = (size: number, entries = own) => checkpointOf(entries.slice(0, size));

  it("reads the checkpoint again until it is as new as the ones that were seen", async () => {
    const { api, waits } = await clientOfLog({ entries: own, shown: [at(100)], served: [at(99), at(90), at(110)] });
    await api.games();
    expect(await api.checkLog()).toMatchObject(at(110));
    expect(waits).toEqual([1, 2]);
  });

  it("accuses no one if the process stays behind, and proves all checkpoints the next time", async () => {
    const served = [at(90), at(99), at(99), at(99)];
    const { api, waits } = await clientOfLog({ entries: own, shown: [at(100)], served });
    await api.games();
    const error: unknown = await api.checkLog().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StaleLogError);
    expect(error).not.toBeInstanceOf(InconsistentLogError);
    expect(String(error)).toMatch(
      /^StaleLogError: expected .* 100 entries, shown 0 s ago, found 99 entries: .*; try again$/,
    );
    expect(waits).toEqual([1, 2, 4]);
    expect(await api.checkLog()).toMatchObject(at(120));
  });

  it("refuses a shorter log afterwards if it was another one", async () => {
    const forked = at(99, entriesOf("fork"));
    const { api } = await clientOfLog({ entries: own, shown: [at(100)], served: Array<Checkpoint>(4).fill(forked) });
    await api.games();
    await expect(api.checkLog()).rejects.toThrow(StaleLogError);
    await expect(api.checkLog()).rejects.toThrow(InconsistentLogError);
    await expect(api.checkLog()).rejects.toThrow(InconsistentLogError);
  });

  it("proves what the older log covers, and refuses the fork in it", async () => {
    const served = Array<Checkpoint>(4).fill(at(105));
    const honest = await clientOfLog({ entries: own, shown: [at(90), at(100), at(110)], served: [...served] });
    for (let call = 0; call < 3; call++) await honest.api.games();
    await expect(honest.api.checkLog()).rejects.toThrow(StaleLogError);
    const shown = [at(90), at(100, entriesOf("fork")), at(110)];
    const forked = await clientOfLog({ entries: own, shown, served: [...served] });
    for (let call = 0; call < 3; call++) await forked.api.games();
    await expect(forked.api.checkLog()).rejects.toThrow(InconsistentLogError);
  });

  it("refuses a log that is still shorter an hour after a checkpoint was seen for the first time", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const served = Array<Checkpoint>(8).fill(at(99));
    const { api } = await clientOfLog({ entries: own, shown: [at(100), at(100)], served });
    await api.games();
    const start = Date.now();
    vi.setSystemTime(start + 59 * MINUTE);
    await api.games();
    await expect(api.checkLog()).rejects.toThrow(StaleLogError);
    vi.setSystemTime(start + 61 * MINUTE);
    await expect(api.checkLog()).rejects.toThrow(InconsistentLogError);
  });

  it("refuses it also if a younger checkpoint was proven meanwhile", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const served = [...Array<Checkpoint>(4).fill(at(105)), ...Array<Checkpoint>(4).fill(at(99))];
    const { api } = await clientOfLog({ entries: own, shown: [at(90), at(110)], served });
    await api.games();
    await api.games();
    const start = Date.now();
    vi.setSystemTime(start + 30 * MINUTE);
    await expect(api.checkLog()).rejects.toThrow(StaleLogError);
    vi.setSystemTime(start + 61 * MINUTE);
    await expect(api.checkLog()).rejects.toThrow(InconsistentLogError);
  });

  it("knows from a stored checkpoint when it was seen", async () => {
    const first = await clientOfLog({ entries: own, shown: [at(100)] });
    await first.api.games();
    const stored = JSON.parse(JSON.stringify(first.api.checkpoint)) as Checkpoint;
    vi.useFakeTimers({ toFake: ["Date"] });
    const start = Date.now();
    for (const [minutes, expected] of [
      [58, StaleLogError],
      [61, InconsistentLogError],
    ] as const) {
      vi.setSystemTime(start + minutes * MINUTE);
      const served = Array<Checkpoint>(4).fill(at(99));
      const later = await clientOfLog({ entries: own, served, options: { checkpoint: stored } });
      await expect(later.api.checkLog()).rejects.toThrow(expected);
    }
  });

  it("requests a tile again that a process does not have yet", async () => {
    const { api, instead, waits } = await clientOfLog({ entries: own, shown: [at(100)] });
    await api.games();
    instead.set("tile/0/000.p/120", () => {
      if (waits.length === 2) instead.clear();
      return new Response("", { status: 404 });
    });
    expect(await api.checkLog()).toMatchObject(at(120));
    expect(waits).toEqual([1, 2, 4]);
    const other = await clientOfLog({ entries: own, shown: [at(100)] });
    await other.api.games();
    other.instead.set("tile/0/000.p/120", () => new Response("", { status: 404 }));
    await expect(other.api.checkLog()).rejects.toThrow(
      /^expected tile\/0\/000.p\/120 .* or withholds entries; try again$/,
    );
    await expect(other.api.checkLog()).rejects.toThrow(StaleLogError);
  });

  it("refuses a log without a tile of a checkpoint that was seen more than an hour ago", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { api, instead } = await clientOfLog({ entries: own, shown: [at(100), at(110)] });
    await api.games();
    await api.games();
    for (const width of [120, 110, 100]) instead.set(`tile/0/000.p/${width}`, () => new Response("", { status: 404 }));
    const start = Date.now();
    vi.setSystemTime(start + 59 * MINUTE);
    await expect(api.checkLog()).rejects.toThrow(StaleLogError);
    vi.setSystemTime(start + 61 * MINUTE);
    await expect(api.checkLog()).rejects.toThrow(InconsistentLogError);
    await expect(api.checkLog()).rejects.toThrow(/^expected tile\/0\/000.p\/110 .* 3660 s ago: entries are withheld/);
    // a process that is behind has the entries of the checkpoint from an hour ago, and not those after it
    instead.delete("tile/0/000.p/110");
    await expect(api.checkLog()).rejects.toThrow(StaleLogError);
    // another hour later the checkpoint of 120 entries is as old
    vi.setSystemTime(start + 121 * MINUTE);
    await expect(api.checkLog()).rejects.toThrow(InconsistentLogError);
  });

  it("refuses a log without a whole tile of such a checkpoint, and waits for one after it", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const long = entriesOf("own", 600);
    for (const [missing, expected] of [
      ["tile/0/001", InconsistentLogError],
      ["tile/0/002.p/88", StaleLogError],
    ] as const) {
      const { api, instead } = await clientOfLog({ entries: long, shown: [at(300, long)] });
      await api.games();
      for (const path of [missing, `${missing}.p/44`]) instead.set(path, () => new Response("", { status: 404 }));
      vi.setSystemTime(Date.now() + 61 * MINUTE);
      await expect(api.checkLog()).rejects.toThrow(expected);
    }
  });

  it("refuses it also if it has seen more than 100 other checkpoints since", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const long = entriesOf("own", 250);
    const shown = [at(100, long), ...Array.from({ length: 120 }, (_, more) => at(130 + more, long))];
    const { api, instead } = await clientOfLog({ entries: long, shown, served: [at(120, long)] });
    const missing = () => new Response("", { status: 404 });
    for (const width of [120, 249, 250]) instead.set(`tile/0/000.p/${width}`, missing);
    await api.games();
    await expect(api.checkLog()).rejects.toThrow(StaleLogError);
    vi.setSystemTime(Date.now() + 61 * MINUTE);
    for (let call = 0; call < 120; call++) await api.games({ house: ["beta"] });
    await expect(api.checkLog()).rejects.toThrow(/^expected tile\/0\/000.p\/120 .* 3660 s ago: entries are withheld/);
    // if it has that tile, later entries may be missing for another hour
    instead.delete("tile/0/000.p/120");
    await expect(api.checkLog()).rejects.toThrow(StaleLogError);
    vi.setSystemTime(Date.now() + 61 * MINUTE);
    await expect(api.checkLog()).rejects.toThrow(InconsistentLogError);
    instead.clear();
    expect(await api.checkLog()).toMatchObject(at(250, long));
  });

  it("ends as soon as its caller aborts", async () => {
    const caller = new AbortController();
    const wait = () => {
      caller.abort(new Error("not needed any more"));
      return new Promise<void>(() => undefined);
    };
    const { api } = await clientOfLog({ entries: own, shown: [at(100)], served: [at(99)], options: { wait } });
    await api.games();
    await expect(api.checkLog({ signal: caller.signal })).rejects.toThrow("not needed any more");
  });
});

describe("a check of a public log that another one has replaced", () => {
  const old = entriesOf("old");
  const seen = { ...checkpointOf(old.slice(0, 100)), origin: "log/1" };
  const declaration = (previous: string) =>
    Buffer.from(JSON.stringify({ kind: "log", origin: "log", previous, reason: "restored from a backup" }));
  const logAfter = (previous: string, size = 30) => [declaration(previous), ...entriesOf("new", size - 1)];
  const whole = noteText("log/1", checkpointOf(old));

  it.each([30, 100, 200])("reports the declaration of a log of %i entries with its reason, each time", async (size) => {
    const entries = logAfter(whole, size);
    const shown = [checkpointOf(entries.slice(0, size - 1))];
    const { api } = await clientOfLog({ entries, shown, options: { checkpoint: seen } });
    await api.games();
    for (let time = 0; time < 2; time++) {
      const error: unknown = await api.checkLog().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(DeclaredLogError);
      expect(error).toMatchObject({
        reason: "restored from a backup",
        previous: { ...checkpointOf(old), origin: "log/1" },
        newest: checkpointOf(entries),
      });
    }
  });

  it("knows the name of the log from a stored checkpoint, though a response showed a newer one since its check", async () => {
    const served = { ...checkpointOf(old.slice(0, 100)), origin: "log/1" };
    const shown = [checkpointOf(old.slice(0, 90)), checkpointOf(old.slice(0, 110))];
    const first = await clientOfLog({ entries: old, shown, served: [served] });
    await first.api.games();
    await first.api.checkLog();
    await first.api.games({ house: ["beta"] });
    const checkpoint = first.api.checkpoint!;
    expect(checkpoint).toMatchObject({ size: 110, origin: "log/1" });
    const { api } = await clientOfLog({ entries: logAfter(whole), options: { checkpoint } });
    await expect(api.checkLog()).rejects.toThrow(DeclaredLogError);
  });

  it.each([
    ["names less than was seen", logAfter(noteText("log/1", checkpointOf(old.slice(0, 99)))), seen],
    ["names another root", logAfter(noteText("log/1", checkpointOf(entriesOf("fork", 100)))), seen],
    ["is about a log that was not seen", logAfter(whole), { ...seen, origin: "log" }],
    ["is about a log of unknown name", logAfter(whole), checkpointOf(old.slice(0, 100))],
    ["names no log", logAfter(""), seen],
    ["is missing", entriesOf("new", 30), seen],
  ])("refuses a log whose declaration %s", async (_, entries, checkpoint) => {
    const { api } = await clientOfLog({ entries, options: { checkpoint: { ...checkpoint, seenAtMs: 0 } } });
    await expect(api.checkLog()).rejects.toThrow(InconsistentLogError);
  });

  it("refuses one whose declaration is not in the log", async () => {
    const { api, instead } = await clientOfLog({
      entries: entriesOf("new", 30),
      options: { checkpoint: { ...seen, seenAtMs: 0 } },
    });
    instead.set("tile/entries/000.p/1", () => new Response(bundleOf([declaration(whole)])));
    await expect(api.checkLog()).rejects.toThrow(InconsistentLogError);
  });

  it("requires that the kept key signed the log before", async () => {
    const { privateKey } = generateKeyPairSync("ed25519");
    const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const [first, other] = [signerOf("log/1", "log", pem), signerOf("log/2", "log", pem)];
    const { size, root } = checkpointOf(old);
    const signed = (origin: string, key: typeof first) =>
      signCheckpoint({ origin, size, root: Buffer.from(root, "base64") }, key);
    for (const [previous, expected] of [
      [signed("log/1", first), DeclaredLogError],
      [signed("log/1", other), InconsistentLogError],
      [whole, InconsistentLogError],
    ] as const) {
      const { api } = await clientOfLog({
        entries: logAfter(previous),
        options: { checkpoint: { ...checkpointOf(old.slice(0, 100)) }, logKey: verifierKeyText(first) },
      });
      await expect(api.checkLog()).rejects.toThrow(expected);
    }
  });
});
