import type { Target } from "./targets.ts";

/** Targets with the faults that the watchdog is for; only its test feeds them. */
export const TARGETS: readonly Target[] = [
  {
    name: "never returns",
    seeds: ["a"],
    run() {
      for (;;);
    },
  },
  {
    name: "throws",
    seeds: ["a"],
    run() {
      throw new Error("a fault of a parser");
    },
  },
  {
    name: "eats memory",
    seeds: ["a"],
    run() {
      const kept: number[][] = [];
      for (;;) kept.push(Array.from({ length: 100_000 }, () => Math.random()));
    },
  },
];
