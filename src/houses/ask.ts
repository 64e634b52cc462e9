import { adapters } from "./adapters/index.ts";
import type { HouseClient } from "./client.ts";
import { houseRequest, settingsOf, type House } from "./house.ts";
import type { Lease, LeasedTable } from "./poll-store.ts";
import type { AskedTable } from "./poll-summary.ts";

/** Requests at once to one house. */
const PARALLEL = 8;

/**
 * Asks a house for each of the leased tables, longest waiting first, eight at a time.
 *
 * The whole poll ends within the house's timeout, since its lease ends soon after: requests begin in the first half, so
 * that each has at least the other half, and what was not asked goes first next time. A house that wants us to wait,
 * or fails the first eight, is asked nothing more; one that is on probe is asked once.
 * `elapsedMs` tells the milliseconds since the lease was taken.
 */
export async function askTables(
  http: HouseClient,
  house: House,
  lease: Lease,
  options: { allowPrivateHouses: boolean; elapsedMs: () => number },
  signal: AbortSignal,
): Promise<AskedTable[]> {
  const timeoutMs = house.settings.timeout_ms;
  const endMs = options.elapsedMs() + timeoutMs;
  const waiting = lease.circuit.state === "half_open" ? lease.tables.slice(0, 1) : [...lease.tables];
  const asked: AskedTable[] = [];
  const oneIsGood = Promise.withResolvers<void>();

  const ask = async (table: LeasedTable): Promise<void> => {
    const leftMs = Math.ceil(endMs - options.elapsedMs());
    const one = await askTable(http, house, table, { ...options, timeoutMs: leftMs }, signal);
    if (one === null) return;
    asked.push(one);
    if (one.answer.kind !== "failed") oneIsGood.resolve();
  };
  const firsts = waiting.splice(0, PARALLEL).map(ask);
  const judged = Promise.race([oneIsGood.promise, Promise.all(firsts)]);
  const goOn = async (first: Promise<void>): Promise<void> => {
    await first;
    await judged;
    while (!signal.aborted && endMs - options.elapsedMs() > timeoutMs / 2 && isAnswering(asked)) {
      const table = waiting.shift();
      if (table === undefined) return;
      await ask(table);
    }
  };
  await Promise.all(firsts.map(goOn));
  return asked;
}

/** Is the house answering, and has it not asked us to wait? */
function isAnswering(asked: readonly AskedTable[]): boolean {
  const wantsUsToWait = asked.some(
    ({ answer }) => answer.status === 429 || (answer.kind === "failed" && answer.retryAfterMs !== null),
  );
  return !wantsUsToWait && asked.some(({ answer }) => answer.kind !== "failed");
}

async function askTable(
  http: HouseClient,
  house: House,
  table: LeasedTable,
  options: { allowPrivateHouses: boolean; elapsedMs: () => number; timeoutMs: number },
  signal: AbortSignal,
): Promise<AskedTable | null> {
  const settings = settingsOf(house, table);
  if (settings === null) return null; // the file was applied between the lease and here
  const ask = adapters[settings.adapter].poll(settings.feed);
  const { allowPrivateHouses, timeoutMs } = options;
  const request = houseRequest(house, ask, { allowPrivateHouses, timeoutMs, headers: conditionOf(table) });
  const requestedMs = options.elapsedMs();
  const answer = await http.fetch(request, signal);
  return {
    tableId: table.tableId,
    name: `${table.game}/${table.market}`,
    path: house.hide(ask.path),
    requestedMs,
    receivedMs: options.elapsedMs(),
    answer: answer.kind === "failed" ? { ...answer, detail: house.hide(answer.detail) } : answer,
  };
}

/**
 * The headers that let a house say "as before". Not sent while the newest answer could not be read, since its repeats
 * would count for nothing, and not where the last full answer is ten minutes old: a cache that lies is found out then.
 */
function conditionOf({ etag, lastModified, refused, fullIsDue }: LeasedTable): Record<string, string> {
  if (refused || fullIsDue) return {};
  if (etag !== null) return { "if-none-match": etag };
  return lastModified === null ? {} : { "if-modified-since": lastModified };
}
