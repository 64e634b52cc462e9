import { readdirSync, readFileSync } from "node:fs";

/** The usage of a process, or of a server with all of its processes, since its start. */
export interface Usage {
  cpuSeconds: number;
  /** Resident memory now; shared memory is counted once. */
  megabytes: number;
}

/** `getconf CLK_TCK`, which is 100 on Linux. */
const TICKS_PER_SECOND = 100;

/** The usage of one process. @throws Error if it does not exist */
export function usageOf(pid: number): Usage {
  return { cpuSeconds: ticksOf(pid).own / TICKS_PER_SECOND, megabytes: residentOf(pid, "VmRSS", "status") };
}

/** The usage of a process and its children, including exited ones. */
export function usageWithChildren(pid: number): Usage {
  const children = childrenOf(pid);
  const sum = children.reduce(
    (total, child) => {
      try {
        return { ticks: total.ticks + ticksOf(child).own, mb: total.mb + residentOf(child, "Pss", "smaps_rollup") };
      } catch {
        return total; // it has exited: the next reading counts it with its parent
      }
    },
    { ticks: 0, mb: 0 },
  );
  const { own, ended } = ticksOf(pid);
  return {
    cpuSeconds: (own + ended + sum.ticks) / TICKS_PER_SECOND,
    megabytes: sum.mb + residentOf(pid, "Pss", "smaps_rollup"),
  };
}

function statOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function ticksOf(pid: number): { own: number; ended: number } {
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = statOf(pid).slice(11, 15).map(Number);
  return { own: user + system, ended: endedUser + endedSystem };
}

/** The parent of a process. */
export function parentOf(pid: number): number {
  return Number(statOf(pid)[1]);
}

function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").trim().split(/\s+/).filter(Boolean).map(Number),
  );
}

function residentOf(pid: number, name: string, file: string): number {
  const [, kilobytes = "0"] =
    new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${pid}/${file}`, "utf8")) ?? [];
  return Number(kilobytes) / 1_024;
}
