import { adapterOf } from "../adapters/index.ts";
import { requestPages } from "./request-pages.ts";
import { cut, LONGEST_REASON } from "../../text.ts";
import type { HouseClient, HouseResponse } from "./client.ts";
import type { FeedRequest } from "../contract.ts";
import { houseRequest, settingsOf, storedPath, type House } from "../house.ts";
import type { Lease, LeasedTable } from "./lease-store.ts";
import type { PollBudget } from "./poll-room.ts";
import type { RequestedTable } from "./poll-summary.ts";
import type { TableSettings } from "../settings/settings.ts";

/** Concurrent requests to one house. */
const PARALLEL = 8;

/** On probe: one page further, and if that was not played yet, the unreadable one. */
const PAGES_ON_PROBE = 2;

/** The parameters of a poll. */
export interface AskOptions {
  allowPrivateHouses: boolean;
  /** Milliseconds since the lease was taken. */
  elapsedMs: () => number;
  /** Takes one request from the house's budget; false if none is left. Absent if the house has no budget. */
  mayRequest?: () => Promise<boolean>;
  budget: PollBudget;
}

/**
 * Requests each of the leased tables from a house, the longest waiting first, eight requests at a time. Tables with the
 * same request share one response.
 *
 * All requests end within the house's timeout, since the lease expires soon after: they start in the first half, so that
 * each has at least the other half; the rest goes first next time. After a 429 or Retry-After, or if the first eight
 * fail, no more requests are sent; a house on probe gets one request; one whose budget is spent waits until it has some
 * again. If the responses grow too large, the rest goes first next time. If requests wait for the connections of other
 * polls until half of the time is over, one counts as timed out, unless the house responded to any request meanwhile.
 */
export async function requestTables(
  http: HouseClient,
  house: House,
  lease: Lease,
  options: AskOptions,
  signal: AbortSignal,
): Promise<RequestedTable[]> {
  const timeoutMs = house.settings.timeout_ms;
  const endMs = options.elapsedMs() + timeoutMs;
  const hasTime = () => endMs - options.elapsedMs() > timeoutMs / 2;
  const requestOnce = createRequester(http, house, { ...options, endMs, hasTime }, signal);
  const requests = groupByRequest(house, lease.tables);
  const waiting = lease.circuit.state === "half_open" ? requests.slice(0, 1) : requests;
  const { requested, add, oneIsGood } = createRequested();
  const mayContinue = () => !signal.aborted && !options.budget.isSpent() && hasTime();

  const ask = async ({ tables, settings, request }: SharedRequest): Promise<void> => {
    const [table] = tables;
    const adapter = adapterOf(settings);
    if (adapter.rounds === "page") {
      const most = lease.circuit.state === "half_open" ? PAGES_ON_PROBE : Infinity;
      let pages = 0;
      const page = async (one: FeedRequest) => {
        pages += 1;
        const may = pages === 1 || (pages <= most && mayContinue());
        return may ? ((await requestOnce(tables, one))[0] ?? null) : null;
      };
      add(await requestPages(adapter, settings.feed, table, page));
      return;
    }
    add(await requestOnce(tables, request));
  };
  const firsts = waiting.splice(0, options.budget.parallel(PARALLEL)).map(ask);
  const verdict = Promise.race([oneIsGood, Promise.allSettled(firsts)]);
  const continueWith = async (first: Promise<void>): Promise<void> => {
    await first;
    await verdict;
    while (mayContinue() && isResponding(requested)) {
      const request = waiting.shift();
      if (request === undefined) return;
      await ask(request);
    }
  };
  const ends = await Promise.allSettled(firsts.map(continueWith)); // all, since the caller may release the lease then
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  return requested;
}

/** Sends the requests of a poll when they have a connection and are within the budget of the house. */
function createRequester(
  http: HouseClient,
  house: House,
  options: AskOptions & { endMs: number; hasTime: () => boolean },
  signal: AbortSignal,
) {
  let isLeft = Promise.resolve(true); // in order, so that the longest waiting table gets the last request
  let isSilenceNoted = false;
  return async (tables: readonly LeasedTable[], ask: FeedRequest): Promise<RequestedTable[]> => {
    const sent = await options.budget.send(async ({ isSilent }) => {
      if (isSilent && !options.hasTime() && !isSilenceNoted && !signal.aborted) {
        isSilenceNoted = true; // one failure is enough: these requests were not sent
        return { responses: unsent(house, tables, ask, options.elapsedMs()), bytes: 0 };
      }
      isLeft = isLeft.then(async (before) => before && options.hasTime() && (await options.mayRequest?.()) !== false);
      if (!(await isLeft) || !options.hasTime()) return { responses: [], bytes: 0 }; // the house did not cause these waits
      const leftMs = Math.ceil(options.endMs - options.elapsedMs());
      const responses = await send(http, house, tables, ask, { ...options, timeoutMs: leftMs }, signal);
      return { responses, ...sizeOf(responses[0]?.response) };
    });
    return sent?.responses ?? [];
  };
}

/** The responses of a poll; `oneIsGood` resolves when the first good one is among them. */
function createRequested() {
  const requested: RequestedTable[] = [];
  const good = Promise.withResolvers<void>();
  const add = (responses: readonly RequestedTable[]) => {
    requested.push(...responses);
    if (responses.some(({ response }) => response.kind !== "failed")) good.resolve();
  };
  return { requested, add, oneIsGood: good.promise };
}

/** A request and the ids of the tables that its response covers: the first one stores the response and has its validators. */
interface SharedRequest {
  tables: [LeasedTable, ...LeasedTable[]];
  settings: TableSettings;
  request: FeedRequest;
}

/** One request for all tables that would send the same one. Tables that left the houses file are skipped. */
function groupByRequest(house: House, tables: readonly LeasedTable[]): SharedRequest[] {
  const requests = new Map<string, SharedRequest>();
  for (const table of tables) {
    const settings = settingsOf(house, table);
    if (settings === null) continue;
    const adapter = adapterOf(settings);
    const request = adapter.poll(settings.feed, { newest: table.newest });
    const key = adapter.rounds === "page" ? String(table.tableId) : JSON.stringify(request);
    const known = requests.get(key);
    if (known === undefined) requests.set(key, { tables: [table], settings, request });
    else known.tables.push(table);
  }
  for (const { tables: sharing } of requests.values()) sharing.sort((a, b) => a.tableId - b.tableId);
  return [...requests.values()];
}

/** Whether the house responds and has not asked us to wait. */
function isResponding(requested: readonly RequestedTable[]): boolean {
  const isThrottled = requested.some(
    ({ response }) => response.status === 429 || (response.kind === "failed" && response.retryAfterMs !== null),
  );
  return !isThrottled && requested.some(({ response }) => response.kind !== "failed");
}

async function send(
  http: HouseClient,
  house: House,
  tables: readonly LeasedTable[],
  ask: FeedRequest,
  options: { allowPrivateHouses: boolean; elapsedMs: () => number; timeoutMs: number },
  signal: AbortSignal,
): Promise<RequestedTable[]> {
  const { allowPrivateHouses, timeoutMs } = options;
  const headers = ask.roundId === undefined ? conditionOf(tables) : {};
  const request = houseRequest(house, ask, { allowPrivateHouses, timeoutMs, headers });
  const requestedMs = options.elapsedMs();
  const response = await http.fetch(request, signal);
  return forTables(house, tables, ask, { requestedMs, receivedMs: options.elapsedMs(), response });
}

/** The failure of a request that found no free connection, because the house did not respond to others. */
function unsent(house: House, tables: readonly LeasedTable[], ask: FeedRequest, nowMs: number): RequestedTable[] {
  const timeoutMs = house.settings.timeout_ms;
  const detail = `no free connection within half of ${timeoutMs} ms: the house responds to no request`;
  const failed = { kind: "failed", status: null, reason: "timeout", detail, retryAfterMs: null } as const;
  const response = { ...failed, elapsedMs: timeoutMs / 2 };
  const all = forTables(house, tables, ask, { requestedMs: nowMs, receivedMs: nowMs, response });
  return all.map((one) => ({ ...one, isSent: false }));
}

/** The bytes of a response for the memory limit, and whether it is one; unknown after a stop of this process. */
function sizeOf(response: HouseResponse | undefined): { bytes: number; hasResponse?: boolean } {
  if (response === undefined) return { bytes: 0 };
  if (response.kind === "response") return { bytes: response.body.length, hasResponse: true };
  if (response.kind !== "failed") return { bytes: 0, hasResponse: true };
  if (response.reason === "aborted") return { bytes: 0 };
  return { bytes: 0, hasResponse: response.status !== null && response.reason !== "timeout" };
}

/** The result of a request for each of its tables. */
function forTables(
  house: House,
  tables: readonly LeasedTable[],
  ask: FeedRequest,
  { response, ...times }: Pick<RequestedTable, "requestedMs" | "receivedMs" | "response">,
): RequestedTable[] {
  const common = {
    path: storedPath(house, ask),
    ...times,
    response:
      response.kind === "failed" ? { ...response, detail: cut(house.hide(response.detail), LONGEST_REASON) } : response,
    ...(ask.roundId === undefined ? {} : { roundId: ask.roundId }),
  };
  return tables.map(({ tableId, game, market }, place) => ({
    tableId,
    name: `${game}/${market}`,
    ...common,
    ...(place > 0 && { isShared: true }),
  }));
}

/**
 * The headers for a 304 response. Not sent while the newest response could not be read, since its repeats would count for
 * nothing, and not when the last full response is ten minutes old: this detects a cache that serves stale data.
 */
function conditionOf(tables: readonly LeasedTable[]): Record<string, string> {
  const [first] = tables;
  if (first === undefined || tables.some(({ refused, fullIsDue }) => refused || fullIsDue)) return {};
  const { etag, lastModified } = first;
  if (etag !== null) return { "if-none-match": etag };
  return lastModified === null ? {} : { "if-modified-since": lastModified };
}
