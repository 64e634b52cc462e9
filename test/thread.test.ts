import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { createThread, ThreadBusyError, ThreadLimitError } from "../src/thread.ts";
import { eventually } from "./support/eventually.ts";
import type { TestTask } from "./support/tasks-thread.ts";

const file = new URL("support/tasks-thread.ts", import.meta.url);
const limits = { deadlineMs: 20_000, idleMs: 60_000, maxTasks: 5, heapMb: 64 };
const open: (() => Promise<void>)[] = [];
afterAll(() => Promise.all(open.map((close) => close())));

function makeThread(own: Partial<typeof limits> = {}) {
  const thread = createThread<TestTask, number>(file, { ...limits, ...own });
  open.push(() => thread.close());
  return thread;
}

describe("a thread", () => {
  it("is reused for tasks, which run one after another", async () => {
    const thread = makeThread();
    expect(await Promise.all([thread.run("count"), thread.run("count"), thread.run("count")])).toEqual([1, 2, 3]);
  });

  it("reports what a task threw, and runs the next one", async () => {
    const thread = makeThread();
    await expect(thread.run("fail")).rejects.toThrow("expected another task");
    expect(await thread.run("count")).toBe(2);
  });

  it("is terminated at the deadline of a task; the task that waited runs in another one", async () => {
    const thread = makeThread();
    expect(await thread.run("count")).toBe(1);
    // the hung task alone reaches its deadline early: the next one has time to start another thread
    const { setTimeout: start } = globalThis;
    const soon = (work: () => void) => start(work, 100);
    const timers = vi.spyOn(globalThis, "setTimeout").mockImplementationOnce(soon);
    onTestFinished(() => timers.mockRestore());
    const [hung, next] = await Promise.allSettled([thread.run("hang"), thread.run("count")]);
    expect(timers).toHaveBeenNthCalledWith(1, expect.any(Function), limits.deadlineMs);
    expect(hung.status === "rejected" ? hung.reason : null).toBeInstanceOf(ThreadLimitError);
    expect(next).toEqual({ status: "fulfilled", value: 1 });
  });

  it("is terminated when a task takes too much memory; the next one runs in another one", async () => {
    const thread = makeThread();
    await expect(thread.run("fill memory")).rejects.toThrow("needs more than 64 MB");
    expect(await thread.run("count")).toBe(1);
  });

  it("has little memory for new objects, however much its process was started with", async () => {
    expect(process.execArgv).toContain("--max-semi-space-size=64");
    expect(await makeThread().run("make garbage")).toBeLessThanOrEqual(12);
  });

  it("refuses a task when too many are waiting", async () => {
    const thread = makeThread({ maxTasks: 2 });
    const accepted = [thread.run("count"), thread.run("count")];
    await expect(thread.run("count")).rejects.toThrow(ThreadBusyError);
    expect(await Promise.all(accepted)).toEqual([1, 2]);
    expect(await thread.run("count")).toBe(3);
  });

  it("skips a task whose signal is aborted while it waits", async () => {
    const thread = makeThread();
    const controller = new AbortController();
    const [first, skipped] = [thread.run("count"), thread.run("count", controller.signal)];
    controller.abort(new Error("no longer needed"));
    await expect(skipped).rejects.toThrow("no longer needed");
    expect(await first).toBe(1);
    expect(await thread.run("count")).toBe(2);
  });

  it("ends when it is idle, and another one starts with the next task", async () => {
    const thread = makeThread({ idleMs: 1 });
    expect(await thread.run("count")).toBe(1);
    await eventually(async () => expect(await thread.run("count")).toBe(1));
  });

  it("that breaks while idle is replaced, and does not end the process", async () => {
    const thread = makeThread();
    await thread.run("exit later").catch(() => undefined); // its result may be lost with it
    await eventually(async () => expect(await thread.run("count")).toBe(1));
  });

  it("rejects its tasks when it is closed, and runs those after it", async () => {
    const thread = makeThread();
    const lost = Promise.allSettled([thread.run("hang"), thread.run("count")]);
    const closing = thread.close();
    const next = thread.run("count");
    expect((await lost).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(await next).toBe(1);
    await closing;
  });
});
