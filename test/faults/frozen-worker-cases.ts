import { InvariantViolation } from "../simulate/invariant-violation.ts";
import type { ManagedProcess } from "../simulate/processes.ts";
import { TARGET_SECONDS, type FaultCase } from "./case.ts";
import { blockWriters } from "./locks.ts";
import type { Testbed } from "./testbed.ts";

const WATCH_SECONDS = 40;

/** Workers that are suspended (SIGSTOP): their connections stay open and their locks held. */
export const FROZEN_WORKER_CASES: readonly FaultCase[] = [
  {
    name: "the leading worker is frozen, and FLUSHALL",
    targetSeconds: TARGET_SECONDS.stillPresent,
    from: "beginning",
    watchSeconds: WATCH_SECONDS,
    async run(testbed) {
      const leader = await findWorker(testbed, { isLeading: true });
      const fromMs = Date.now();
      const end = freeze(leader);
      await testbed.servers.flushRedis();
      return { fromMs, observed: `${leader.name} was frozen`, end };
    },
  },
  {
    name: "a worker that does not lead is frozen, mid-poll",
    targetSeconds: TARGET_SECONDS.stillPresent,
    from: "beginning",
    watchSeconds: WATCH_SECONDS,
    async run(testbed) {
      const worker = await findWorker(testbed, { isLeading: false });
      const lock = await blockWriters(testbed.sql, "payloads", { writers: testbed.workers.length });
      const fromMs = Date.now();
      const end = freeze(worker);
      await lock.release();
      return { fromMs, observed: `${worker.name} was frozen`, end };
    },
  },
];

/** Suspends a worker's process; the returned function resumes it. */
function freeze(worker: ManagedProcess): () => void {
  const pid = worker.pid();
  if (pid === null) throw new InvariantViolation(`${worker.name} has no process to freeze`);
  process.kill(pid, "SIGSTOP");
  return () => {
    if (worker.pid() === pid) process.kill(pid, "SIGCONT");
  };
}

async function findWorker({ sql, workers }: Testbed, { isLeading }: { isLeading: boolean }): Promise<ManagedProcess> {
  const [row] = await sql<{ pid: number }[]>`
    select w.pid
    from heartbeats h
    join workers w on w.id = h.detail ->> 'leader'
    where h.name = 'reconcile'`;
  const found = workers.find((worker) => (worker.pid() === row?.pid) === isLeading);
  if (row === undefined || found === undefined)
    throw new InvariantViolation("expected a leading worker and another worker, found fewer");
  return found;
}
