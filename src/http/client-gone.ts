import type { ServerResponse } from "node:http";

/** The client disconnected, so the response is not needed any more. */
export class ClientGoneError extends Error {
  override name = "ClientGoneError";
}

/**
 * Returns a signal that aborts, with a {@link ClientGoneError}, if the client disconnects before the response is sent.
 */
export function clientGone(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const abort = () => controller.abort(new ClientGoneError("the client disconnected before the response was sent"));
  if (response.closed) abort();
  else response.once("close", abort);
  return controller.signal;
}
