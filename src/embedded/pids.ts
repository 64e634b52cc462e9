import { readFile, readlink } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { codeOf } from "../errors.ts";
import { run, type StopSteps } from "./process.ts";

/** Whether a process with this pid runs, ours or not. A zombie does not run. */
export async function isRunning(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it runs and belongs to another user.
    if (codeOf(error) !== "EPERM") return false;
  }
  return (await statFields(pid))?.[0] !== "Z";
}

/**
 * Identifies a process among those with the same pid: its start in kernel ticks and the boot from which they count. A
 * wall-clock time would change when the clock is set. Null if the process is gone.
 */
export async function processMark(pid: number): Promise<string | null> {
  if (!(await isRunning(pid))) return null;
  const fields = await statFields(pid);
  if (fields === null) return (await run({ command: "ps", args: ["-o", "lstart=", "-p", `${pid}`] })).stdout.trim();
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
  return `${boot.trim()}:${fields[19]}`;
}

/** Whether this process leads a process group, as one does that setsid or a shell's job control detached. */
export async function leadsItsGroup(): Promise<boolean> {
  const fields = await statFields(process.pid);
  const group = fields?.[2] ?? (await run({ command: "ps", args: ["-o", "pgid=", "-p", `${process.pid}`] })).stdout;
  return Number(group) === process.pid;
}

/** The command line of a process, its words joined by blanks; empty if it is gone. */
export async function commandLine(pid: number): Promise<string> {
  if (process.platform !== "linux")
    return (await run({ command: "ps", args: ["-o", "command=", "-p", `${pid}`] })).stdout;
  const text = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return text.replaceAll("\0", " ");
}

/** The working directory of a process; null if it is gone or the system does not report it. */
export async function workingDirectory(pid: number): Promise<string | null> {
  return readlink(`/proc/${pid}/cwd`).catch(() => null);
}

/** Ends a server of an earlier run: sends each signal and waits for its effect. @throws Error if it still runs */
export async function endLeftover(pid: number, steps: StopSteps): Promise<void> {
  for (const { signal, waitMs } of steps) {
    if (!(await isRunning(pid))) return;
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (codeOf(error) === "ESRCH") return;
      throw new Error(`process ${pid} of an earlier run could not be stopped: stop it manually`, { cause: error });
    }
    const deadline = performance.now() + waitMs;
    while (performance.now() < deadline && (await isRunning(pid))) await delay(20);
  }
  if (await isRunning(pid)) throw new Error(`process ${pid} of an earlier run does not stop: stop it manually`);
}

/** The fields of /proc/PID/stat after the name, which may itself hold blanks and brackets; null if there is none. */
async function statFields(pid: number): Promise<string[] | null> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  return text === null ? null : text.slice(text.lastIndexOf(")") + 2).split(" ");
}
