import { draw, drawInteger } from "../../src/demo/draw.ts";

/** What happens to servers and processes. */
export const FAULTS = [
  "kill worker",
  "kill all workers",
  "stop all workers",
  "kill api",
  "kill Redis",
  "empty Redis",
  "freeze Redis",
  "cut Redis",
  "restart PostgreSQL",
  "freeze PostgreSQL",
  "cut PostgreSQL",
  "depose leader",
  "set clock of worker",
  "start worker with wrong clock",
  "set clock of api",
  "fill disk of servers",
  "fill disk of processes",
  "slow disk",
  "fill disk of log",
  "step clock of worker back",
  "add hanging house",
  "hold roll-up",
  "restore backup",
  "delay names",
  "stop mail server",
  "stop payment app",
  "lie about deposits",
] as const;
export type FaultKind = (typeof FAULTS)[number];

/** Those that take a disk which can be filled. */
export const DISK_FAULTS: readonly FaultKind[] = ["fill disk of servers", "fill disk of processes", "fill disk of log"];

/** Those that end every process, also one that is to live throughout a soak. */
export const STOPPING_FAULTS: readonly FaultKind[] = ["restore backup"];

/** A fault and when it begins, in milliseconds from the start. */
export interface Fault {
  kind: FaultKind;
  atMs: number;
  number: number;
}

/**
 * Draws when what happens: a fault every so often, every kind once before one comes again. The seed alone decides, whatever
 * the machine can do: one that it cannot do is left out by whoever plays the day.
 */
export function drawFaults(
  seed: number,
  lastsMs: number,
  everyMs: number,
  kinds: readonly FaultKind[] = FAULTS,
): Fault[] {
  const faults: Fault[] = [];
  let left: FaultKind[] = [];
  for (let atMs = everyMs * (0.6 + 0.4 * draw(seed, "fault", "first")), n = 0; atMs < lastsMs - everyMs / 2; n++) {
    if (left.length === 0) left = [...kinds];
    const [kind] = left.splice(drawInteger(left.length, seed, "fault", n), 1);
    if (kind === undefined) break;
    faults.push({ kind, atMs, number: n });
    atMs += everyMs * (0.7 + 0.6 * draw(seed, "fault", "pause", n));
  }
  return faults;
}
