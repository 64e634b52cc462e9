import createClient, { type Middleware } from "openapi-fetch";
import type { paths } from "./types.ts";

/** Longer than this nobody waits here: a quota that is gone for the day is for a person to know. */
const LONGEST_WAIT_SECONDS = 60;
const TRIES = 3;

type Client = ReturnType<typeof roundhouse>;
export type Accuracy = Awaited<ReturnType<Client["accuracy"]>>[number];
export type Forecast = Awaited<ReturnType<Client["forecasts"]>>[number];

/** What went wrong, by the code that the API has for it. */
export class RoundhouseError extends Error {
  readonly code: string;
  readonly requestId: string;

  constructor({ error, request_id }: { error: { code: string; message: string }; request_id: string }) {
    super(`${error.code}: ${error.message}`);
    this.code = error.code;
    this.requestId = request_id;
  }
}

/**
 * A client of one instance, typed by its OpenAPI document. It sends the ETag of the last answer to each question, so
 * that an answer that has not changed costs nothing, and waits as long as `Retry-After` says, up to a minute.
 */
export function roundhouse(options: {
  url: string;
  key: string;
  fetch?: (request: Request) => Promise<Response>;
  wait?: (seconds: number) => Promise<void>;
}) {
  const { url, key, fetch = globalThis.fetch, wait = waitSeconds } = options;
  const client = createClient<paths>({
    baseUrl: url,
    headers: { "X-Api-Key": key },
    fetch: patient(fetch, wait),
  });
  client.use(remembering());
  return {
    games: async () => (await answered(client.GET("/api/v1/games"))).games,
    forecasts: async () => (await answered(client.GET("/api/v1/forecasts"))).forecasts,
    accuracy: async (feature?: string) =>
      (await answered(client.GET("/api/v1/accuracy", { params: { query: feature === undefined ? {} : { feature } } })))
        .accuracy,
    usage: () => answered(client.GET("/api/v1/usage")),
  };
}

/** The body of a 200. @throws RoundhouseError otherwise. */
async function answered<Body>(asked: Promise<{ data?: Body; error?: RoundhouseErrorBody }>): Promise<Body> {
  const { data, error } = await asked;
  if (error !== undefined) throw new RoundhouseError(error);
  if (data === undefined) throw new Error("expected an answer with a body, got none");
  return data;
}

type RoundhouseErrorBody = ConstructorParameters<typeof RoundhouseError>[0];

/** Asks again where the API says when: after `Retry-After`, if that is soon enough. */
function patient(fetch: (request: Request) => Promise<Response>, wait: (seconds: number) => Promise<void>) {
  return async (request: Request): Promise<Response> => {
    for (let tries = 1; ; tries++) {
      const response = await fetch(request.clone());
      const seconds = Number(response.headers.get("Retry-After") ?? Number.NaN);
      const isWorthIt = [429, 503].includes(response.status) && seconds <= LONGEST_WAIT_SECONDS;
      if (!isWorthIt || tries === TRIES) return response;
      await response.body?.cancel();
      await wait(seconds);
    }
  };
}

/** Sends the ETag of the answer that is held to a question; a 304 then gives that answer again. */
function remembering(): Middleware {
  const held = new Map<string, { etag: string; response: Response }>();
  return {
    onRequest({ request }) {
      const known = held.get(request.url);
      if (known !== undefined) request.headers.set("If-None-Match", known.etag);
      return request;
    },
    onResponse({ request, response }) {
      const known = held.get(request.url);
      if (response.status === 304 && known !== undefined) return known.response.clone();
      const etag = response.headers.get("ETag");
      if (response.status === 200 && etag !== null) held.set(request.url, { etag, response: response.clone() });
      return undefined;
    },
  };
}

function waitSeconds(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
}
