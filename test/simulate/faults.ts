import { draw, drawInteger } from "../../src/houses/demo/draw.ts";
import { oneOf, type Member } from "./crew.ts";
import type { SimulatedServers } from "./servers.ts";

/** What happens to servers and processes. */
export const FAULTS = [
  "kill worker",
  "kill all workers",
  "kill api",
  "kill Redis",
  "empty Redis",
  "freeze Redis",
  "cut Redis",
  "restart PostgreSQL",
  "freeze PostgreSQL",
  "cut PostgreSQL",
  "depose leader",
] as const;
export type FaultKind = (typeof FAULTS)[number];

/** A fault and when it begins, in milliseconds from the start. */
export interface Fault {
  kind: FaultKind;
  atMs: number;
  number: number;
}

/** Draws when what happens: a fault every so often, every kind once before one comes again. */
export function drawFaults(seed: number, lastsMs: number, everyMs: number): Fault[] {
  const faults: Fault[] = [];
  let left: FaultKind[] = [];
  for (let atMs = everyMs * (0.6 + 0.4 * draw(seed, "fault", "first")), n = 0; atMs < lastsMs - everyMs / 2; n++) {
    if (left.length === 0) left = [...FAULTS];
    const [kind] = left.splice(drawInteger(left.length, seed, "fault", n), 1);
    if (kind === undefined) break;
    faults.push({ kind, atMs, number: n });
    atMs += everyMs * (0.7 + 0.6 * draw(seed, "fault", "pause", n));
  }
  return faults;
}

/** Makes a fault happen, and comes back when what was broken is whole again (processes may still be starting). */
export async function make(
  { kind, number }: Fault,
  {
    seed,
    servers,
    workers,
    apis,
  }: { seed: number; servers: SimulatedServers; workers: readonly Member[]; apis: readonly Member[] },
): Promise<void> {
  const forMs = 1_000 + 4_000 * draw(seed, "fault", "lasts", number);
  switch (kind) {
    case "kill worker":
      return oneOf(workers, seed, "victim", number).kill();
    case "kill all workers":
      return void (await Promise.all(workers.map((worker) => worker.kill())));
    case "kill api":
      return oneOf(apis, seed, "victim", number).kill();
    case "kill Redis":
      return servers.killRedis();
    case "empty Redis":
      return servers.flushRedis();
    case "freeze Redis":
      return servers.freezeRedis(forMs);
    case "cut Redis":
      return servers.cut("redis", forMs);
    case "restart PostgreSQL":
      return servers.restartPostgres();
    case "freeze PostgreSQL":
      return servers.freezePostgres(forMs);
    case "cut PostgreSQL":
      return servers.cut("postgres", forMs);
    case "depose leader":
      return servers.deposeLeader();
  }
}
