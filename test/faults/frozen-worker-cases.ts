import { Broken } from "../simulate/invariant-violation.ts";
import type { Member } from "../simulate/processes.ts";
import { ASKED, type FaultCase } from "./case.ts";
import { holdWriters } from "./locks.ts";
import type { World } from "./testbed.ts";

const WATCH_SECONDS = 40;

/** Workers that stop running without ending, as on a machine that is suspended: their connections and locks stay. */
export const FROZEN_CASES: readonly FaultCase[] = [
  {
    name: "the leading worker is frozen, and FLUSHALL",
    askedSeconds: ASKED.stillPresent,
    from: "beginning",
    watchSeconds: WATCH_SECONDS,
    async run(world) {
      const leader = await findWorker(world, { isLeading: true });
      const fromMs = Date.now();
      const end = freeze(leader);
      await world.servers.flushRedis();
      return { fromMs, seen: `${leader.name} was frozen`, end };
    },
  },
  {
    name: "a worker that does not lead is frozen, mid-poll",
    askedSeconds: ASKED.stillPresent,
    from: "beginning",
    watchSeconds: WATCH_SECONDS,
    async run(world) {
      const worker = await findWorker(world, { isLeading: false });
      const hold = await holdWriters(world.sql, "payloads", { writers: world.workers.length });
      const fromMs = Date.now();
      const end = freeze(worker);
      await hold.release();
      return { fromMs, seen: `${worker.name} was frozen`, end };
    },
  },
];

/** Stops a worker's process; the returned function lets it continue. */
function freeze(worker: Member): () => void {
  const pid = worker.pid();
  if (pid === null) throw new Broken(`${worker.name} has no process to freeze`);
  process.kill(pid, "SIGSTOP");
  return () => {
    if (worker.pid() === pid) process.kill(pid, "SIGCONT");
  };
}

async function findWorker({ sql, workers }: World, { isLeading }: { isLeading: boolean }): Promise<Member> {
  const [row] = await sql<{ pid: number }[]>`
    select w.pid
    from heartbeats h
    join workers w on w.id = h.detail ->> 'leader'
    where h.name = 'reconcile'`;
  const found = workers.find((worker) => (worker.pid() === row?.pid) === isLeading);
  if (row === undefined || found === undefined) throw new Broken("expected a leading worker and another one");
  return found;
}
