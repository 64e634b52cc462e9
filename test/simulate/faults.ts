import { draw, drawInteger } from "../../src/demo/draw.ts";

/** The faults of servers and processes. */
export const FAULTS = [
  "kill worker",
  "kill all workers",
  "stop all workers",
  "kill api",
  "kill Redis",
  "empty Redis",
  "freeze Redis",
  "disconnect Redis",
  "restart PostgreSQL",
  "freeze PostgreSQL",
  "disconnect PostgreSQL",
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
  "pause roll-up",
  "restore backup",
  "delay DNS",
  "stop mail server",
  "stop payment app",
  "false deposits",
] as const;
export type FaultKind = (typeof FAULTS)[number];

/** Faults that need a disk of limited size. */
export const DISK_FAULTS: readonly FaultKind[] = ["fill disk of servers", "fill disk of processes", "fill disk of log"];

/** Faults that stop every process, also those that a soak keeps alive. */
export const STOPPING_FAULTS: readonly FaultKind[] = ["restore backup"];

/** How long memory of a fault stays in use: workers drop the states of 7,000 tables after ten minutes, and then collect. */
export const HELD_MS: Partial<Record<FaultKind, number>> = { "add hanging house": 660_000 };

/** A fault; `atMs` counts from the start of the day. */
export interface Fault {
  kind: FaultKind;
  atMs: number;
  number: number;
}

/**
 * Draws the faults of a day. Every kind occurs once before any is repeated. The result depends on the seed alone: faults
 * that this machine cannot cause are skipped later, in `runFaults`.
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
