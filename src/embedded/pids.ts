import { readFile, readlink } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { codeOf } from "../errors.ts";
import { run, type StopSteps } from "./process.ts";

/** Whether a process with this pid runs, ours or not. One that ended and is only waiting to be reaped does not. */
export async function isRunning(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it is there, and someone else's.
    if (codeOf(error) !== "EPERM") return false;
  }
  return (await statFields(pid))?.[0] !== "Z";
}

/**
 * Tells a process from a later one that was given the same pid: its start in kernel ticks and the boot they count
 * from. Wall-clock times would not do, since a clock may be set after the start. Null where the process is gone.
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

/** The command line of a process, its words joined by blanks; empty where it is gone. */
export async function commandLine(pid: number): Promise<string> {
  if (process.platform !== "linux")
    return (await run({ command: "ps", args: ["-o", "command=", "-p", `${pid}`] })).stdout;
  const text = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return text.replaceAll("\0", " ");
}

/** The working directory of a process; null if it is gone or the system does not tell. */
export async function workingDirectory(pid: number): Promise<string | null> {
  return readlink(`/proc/${pid}/cwd`).catch(() => null);
}

/** Ends a server that an earlier run left behind: each signal has its time to work; throws if nothing helped. */
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
