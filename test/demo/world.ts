import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { startDemoHouse } from "../../src/demo/server.ts";

/** The moment at which most demo houses of the tests are started for the first time. */
export const START_MS = Date.parse("2026-11-21T04:00:00.000Z");
/** Their T0 at speed 1: 200 games before. */
export const T0_MS = START_MS - 200_000;

/** A clock that stands until it is moved. */
export interface Clock {
  nowMs: number;
}

/** An empty folder for one test, removed after it. */
export async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "roundhouse-demo-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const bustabitAnswer = z.strictObject({
  rounds: z.array(
    z.strictObject({ id: z.number(), multiplier: z.number(), created_at: z.iso.datetime(), hash: z.string() }),
  ),
  chain_ended: z.boolean().optional(),
  note: z.string().optional(),
});

/** Reads an answer of the true house, which must have exactly the promised fields. */
export async function readBustabit(answer: Response): Promise<z.infer<typeof bustabitAnswer>> {
  return bustabitAnswer.parse(await answer.json());
}

/** A demo house on a free port, closed after the test, with what it said to people. */
export async function makeDemoHouse(
  options: { clock?: Clock; dataDir?: string; speed?: number; seed?: number; port?: number } = {},
) {
  const clock = options.clock ?? { nowMs: START_MS };
  const dataDir = options.dataDir ?? (await makeFolder());
  const said: string[] = [];
  const house = await startDemoHouse({
    host: "127.0.0.1",
    port: options.port ?? 0,
    dataDir,
    speed: options.speed ?? 1,
    seed: options.seed ?? 1,
    now: () => clock.nowMs,
    say: (line) => said.push(line),
  });
  onTestFinished(() => house.close());
  const get = (pathname: string, init?: RequestInit): Promise<Response> => fetch(house.url + pathname, init);
  return { ...house, clock, dataDir, said, get };
}
