import createClient, { type Middleware } from "openapi-fetch";
import { checkpointIn, type Checkpoint } from "./checkpoint.ts";
import { apiErrorOf, ConnectionError, type ErrorBody } from "./errors.ts";
import { etagCache } from "./etag-cache.ts";
import { PublicLog } from "./public-log.ts";
import { retryAfter, retrying, type Fetch } from "./retry.ts";
import type { paths } from "./types.ts";
import { abortable, waitSeconds, type Wait } from "./wait.ts";

/** The parameters of an endpoint, by its path. */
type Query<Path extends keyof paths> = paths[Path] extends { get: { parameters: { query?: infer Q } } }
  ? NonNullable<Q>
  : never;
/** The body of a 200, by path. */
type Body<Path extends keyof paths> = paths[Path] extends {
  get: { responses: { 200: { content: { "application/json": infer B } } } };
}
  ? B
  : never;

export type Games = Body<"/api/v1/games">;
export type Rounds = Body<"/api/v1/rounds">;
export type Forecasts = Body<"/api/v1/forecasts">;
export type Readings = Body<"/api/v1/readings">;
export type Accuracy = Body<"/api/v1/accuracy">;
export type Usage = Body<"/api/v1/usage">;

export interface ClientOptions {
  /** Address of the instance, such as `https://rounds.example`. */
  url: string;
  /** `rh_live_` and 38 characters; sent in the header `X-Api-Key` only. */
  key: string;
  /** Attempts of a call, the first one included (3). */
  attempts?: number;
  /** Longer than this no `Retry-After` is waited for: the error is thrown (60). */
  longestWaitSeconds?: number;
  /** Deadline of one attempt (30). */
  timeoutSeconds?: number;
  /** How many responses are kept for their ETag (100). */
  cacheSize?: number;
  /** A checkpoint of the public log from an earlier run; the log must still begin with it. */
  checkpoint?: Checkpoint;
  /** The log's verifier key, kept from `/log/key`; with it the signatures of checkpoints are checked. */
  logKey?: string;
  /** How long a process may serve an older log than another one; after that the log was shortened (3,600). */
  longestLagSeconds?: number;
  fetch?: Fetch;
  wait?: Wait;
}

/** What each call takes besides its parameters. */
export interface CallOptions {
  /** Ends the call, also while it waits for its next attempt; the reason of the abort is thrown. */
  signal?: AbortSignal;
}

/**
 * A client of one instance: one method per endpoint, typed by its OpenAPI document.
 *
 * - An unchanged response costs no quota: the ETag of the last one is sent, and the kept response returned on a 304.
 * - 429, 502, 503, 504 and broken connections are tried again, after `Retry-After` if it is short enough.
 * - Everything else is thrown as an {@link ApiError} or a {@link ConnectionError}.
 */
export class Roundhouse {
  readonly #client: ReturnType<typeof createClient<paths>>;
  readonly #log: PublicLog;

  constructor(options: ClientOptions) {
    const { key, attempts = 3, longestWaitSeconds = 60, timeoutSeconds = 30, cacheSize = 100 } = options;
    const wait = abortable(options.wait ?? waitSeconds);
    const url = options.url.replace(/\/+$/, "");
    const fetch = retrying({
      fetch: options.fetch ?? globalThis.fetch,
      wait,
      attempts,
      longestWaitSeconds,
      timeoutSeconds,
    });
    const { logKey, longestLagSeconds = 3_600, checkpoint } = options;
    this.#log = new PublicLog({ url, fetch, wait, logKey, longestLagSeconds });
    if (checkpoint !== undefined) this.#log.note(checkpoint);
    this.#client = createClient<paths>({
      baseUrl: url,
      headers: { "X-Api-Key": key },
      querySerializer: { array: { style: "form", explode: false } },
      fetch,
    });
    this.#client.use(etagCache(cacheSize), this.#checkpoints());
  }

  /** The tables of the plan, and whether each is live. */
  games(query: Query<"/api/v1/games"> = {}, options: CallOptions = {}): Promise<Games> {
    return bodyOf(this.#client.GET("/api/v1/games", { params: { query }, ...options }));
  }

  /** The newest rounds of each table, newest first. */
  rounds(query: Query<"/api/v1/rounds"> = {}, options: CallOptions = {}): Promise<Rounds> {
    return bodyOf(this.#client.GET("/api/v1/rounds", { params: { query }, ...options }));
  }

  /** Probabilities of the next color and of windows, each with its baseline. */
  forecasts(query: Query<"/api/v1/forecasts"> = {}, options: CallOptions = {}): Promise<Forecasts> {
    return bodyOf(this.#client.GET("/api/v1/forecasts", { params: { query }, ...options }));
  }

  /** How each table behaves now, as text and as facts. */
  readings(query: Query<"/api/v1/readings"> = {}, options: CallOptions = {}): Promise<Readings> {
    return bodyOf(this.#client.GET("/api/v1/readings", { params: { query }, ...options }));
  }

  /** Measured accuracy of the forecasts, per feature and period. */
  accuracy(query: Query<"/api/v1/accuracy"> = {}, options: CallOptions = {}): Promise<Accuracy> {
    return bodyOf(this.#client.GET("/api/v1/accuracy", { params: { query }, ...options }));
  }

  /** Calls today and this month, and what is left. Free, and available when the quota is used up. */
  usage(query: Query<"/api/v1/usage"> = {}, options: CallOptions = {}): Promise<Usage> {
    return bodyOf(this.#client.GET("/api/v1/usage", { params: { query }, ...options }));
  }

  /** The newest checkpoint of the public log that was seen; store it whole, and pass it to the next client. */
  get checkpoint(): Checkpoint | null {
    return this.#log.latest;
  }

  /**
   * Checks that the public log still begins with every checkpoint this client has seen: nothing that they cover was
   * changed or removed.
   * @returns the newest checkpoint, from which the next check starts
   * @throws InconsistentLogError if it does not
   * @throws StaleLogError if the log is shorter than one that another process showed less than an hour ago, or lacks
   * entries after it; the next check continues with it
   */
  checkLog({ signal = new AbortController().signal }: CallOptions = {}): Promise<Checkpoint> {
    return this.#log.check(signal);
  }

  /** Notes the checkpoint of each response. */
  #checkpoints(): Middleware {
    return {
      onResponse: ({ response }) => {
        const seen = checkpointIn(response.headers.get("X-Log-Checkpoint"));
        if (seen !== null) this.#log.note(seen);
      },
    };
  }
}

/** The body of a 200. @throws ApiError or ConnectionError otherwise */
async function bodyOf<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call.catch((reason: unknown) => {
    if (reason instanceof SyntaxError)
      throw new ConnectionError("expected JSON from the API, got something else from a proxy", { cause: reason });
    throw reason;
  });
  if (data !== undefined) return data;
  if (isErrorBody(error)) throw apiErrorOf(response.status, error, retryAfter(response));
  throw new ConnectionError(`expected JSON from the API, got status ${response.status} from a proxy`);
}

function isErrorBody(body: unknown): body is ErrorBody {
  return typeof body === "object" && body !== null && "request_id" in body && "error" in body;
}
