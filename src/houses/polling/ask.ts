import { adapterOf } from "../adapters/index.ts";
import { askPages } from "./ask-pages.ts";
import type { HouseClient } from "./client.ts";
import type { Ask } from "../contract.ts";
import { houseRequest, settingsOf, type House } from "../house.ts";
import type { Lease, LeasedTable } from "./lease-store.ts";
import type { PollBudget } from "./poll-room.ts";
import type { AskedTable } from "./poll-summary.ts";

/** Requests at once to one house. */
const PARALLEL = 8;

/** On probe: a page further on, and where that was not played yet, the one that could not be read. */
const PAGES_ON_PROBE = 2;

/** How a poll asks. */
export interface AskOptions {
  allowPrivateHouses: boolean;
  /** Milliseconds since the lease was taken. */
  elapsedMs: () => number;
  /** Takes one request from the house's budget; false where none is left now. Left out where it has no budget. */
  mayAsk?: () => Promise<boolean>;
  budget: PollBudget;
}

/**
 * Asks a house for each of the leased tables, longest waiting first, eight at a time.
 *
 * The whole poll ends within the house's timeout, since its lease ends soon after: requests begin in the first half, so
 * that each has at least the other half, and what was not asked goes first next time. A house that wants us to wait,
 * or fails the first eight, is asked nothing more; one that is on probe is asked for one table; one whose budget is
 * spent is left alone until it has some again. When the responses grow too large, the rest goes first next time.
 */
export async function askTables(
  http: HouseClient,
  house: House,
  lease: Lease,
  options: AskOptions,
  signal: AbortSignal,
): Promise<AskedTable[]> {
  const timeoutMs = house.settings.timeout_ms;
  const endMs = options.elapsedMs() + timeoutMs;
  const waiting = lease.circuit.state === "half_open" ? lease.tables.slice(0, 1) : [...lease.tables];
  const asked: AskedTable[] = [];
  const oneIsGood = Promise.withResolvers<void>();
  let isLeft = Promise.resolve(true); // asked in turn, so that who waits longest gets the last request of it
  const mayGoOn = () => !signal.aborted && !options.budget.isSpent() && endMs - options.elapsedMs() > timeoutMs / 2;

  const askOnce = async (table: LeasedTable, ask: Ask): Promise<AskedTable | null> => {
    isLeft = isLeft.then(async (before) => before && (await options.mayAsk?.()) !== false);
    if (!(await isLeft)) return null;
    const leftMs = Math.ceil(endMs - options.elapsedMs());
    const one = await send(http, house, table, ask, { ...options, timeoutMs: leftMs }, signal);
    options.budget.add(one.answer.kind === "answer" ? one.answer.body.length : 0);
    if (one.answer.kind !== "failed") oneIsGood.resolve();
    return one;
  };
  const ask = async (table: LeasedTable): Promise<void> => {
    const settings = settingsOf(house, table);
    if (settings === null) return; // the file was applied between the lease and here
    const adapter = adapterOf(settings);
    if (adapter.rounds === "page") {
      const most = lease.circuit.state === "half_open" ? PAGES_ON_PROBE : Infinity;
      let pages = 0;
      const page = async (one: Ask) => {
        pages += 1;
        return pages === 1 || (pages <= most && mayGoOn()) ? askOnce(table, one) : null;
      };
      asked.push(...(await askPages(adapter, settings.feed, table, page)));
      return;
    }
    const one = await askOnce(table, adapter.poll(settings.feed, { newest: table.newest }));
    if (one !== null) asked.push(one);
  };
  const firsts = waiting.splice(0, options.budget.parallel(PARALLEL)).map(ask);
  const judged = Promise.race([oneIsGood.promise, Promise.all(firsts)]);
  const goOn = async (first: Promise<void>): Promise<void> => {
    await first;
    await judged;
    while (mayGoOn() && isAnswering(asked)) {
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

async function send(
  http: HouseClient,
  house: House,
  table: LeasedTable,
  ask: Ask,
  options: { allowPrivateHouses: boolean; elapsedMs: () => number; timeoutMs: number },
  signal: AbortSignal,
): Promise<AskedTable> {
  const { allowPrivateHouses, timeoutMs } = options;
  const headers = ask.roundId === undefined ? conditionOf(table) : {};
  const request = houseRequest(house, ask, { allowPrivateHouses, timeoutMs, headers });
  const requestedMs = options.elapsedMs();
  const answer = await http.fetch(request, signal);
  return {
    tableId: table.tableId,
    name: `${table.game}/${table.market}`,
    path: house.hide(ask.path),
    requestedMs,
    receivedMs: options.elapsedMs(),
    answer: answer.kind === "failed" ? { ...answer, detail: house.hide(answer.detail) } : answer,
    ...(ask.roundId === undefined ? {} : { roundId: ask.roundId }),
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
