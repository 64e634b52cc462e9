import { createServer, type IncomingMessage, type Server } from "node:http";
import { reasonOf } from "../errors.ts";
import { send, type DemoResponse } from "./response.ts";

const MOST_CONNECTIONS = 256;
const REQUEST_TIMEOUT_MS = 10_000;
/** How often that is looked at: Node does each 30 s by itself. */
const LOOK_EACH_MS = 2_000;
/** Longer than any poll interval that is likely, so that a poller keeps its connection. */
const KEEP_ALIVE_MS = 65_000;
/** Responses in flight when it is closed get this long. */
const CLOSING_MS = 1_000;

/** A demo house that listens. */
export interface DemoHouse {
  url: string;
  port: number;
  close(): Promise<void>;
}

/** How an HTTP server of a demo house is started. */
interface Serving {
  host: string;
  /** 0 takes any free port. */
  port: number;
  respond: (request: IncomingMessage) => Promise<DemoResponse>;
  /** What is sent if `respond` failed. */
  onError: (request: IncomingMessage, error: unknown) => DemoResponse;
  /** Lines for people. */
  say: (line: string) => void;
}

/**
 * Listens and responds to each request. Responses in flight when it is closed get a second.
 * @throws Error with what to do if the port cannot be used.
 */
export async function serve({ host, port, respond, onError, say }: Serving): Promise<DemoHouse> {
  const server = createServer({ connectionsCheckingInterval: LOOK_EACH_MS }, (request, response) => {
    respond(request).then(
      (good) => send(request, response, good),
      (error: unknown) => send(request, response, onError(request, error)),
    );
  });
  server.maxConnections = MOST_CONNECTIONS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.headersTimeout = REQUEST_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  const listening = await listen(server, port, host);
  server.on("error", (error) => say(`the demo house's server failed: ${reasonOf(error)}`));
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${listening}`,
    port: listening,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const deadline = setTimeout(() => server.closeAllConnections(), CLOSING_MS);
      await closed;
      clearTimeout(deadline);
    },
  };
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const refused = (error: Error): void => {
      const code = "code" in error ? error.code : undefined;
      const why =
        code === "EADDRINUSE"
          ? "the port is taken; stop what listens there, or choose another port (0 takes any free one)"
          : code === "EACCES"
            ? "this user may not listen there; choose a port above 1023"
            : reasonOf(error);
      reject(new Error(`the demo house cannot listen on ${host}:${port}: ${why}`, { cause: error }));
    };
    server.once("error", refused);
    server.listen(port, host, () => {
      server.off("error", refused);
      const address = server.address();
      if (address === null || typeof address === "string") reject(new Error("expected a TCP address"));
      else resolve(address.port);
    });
  });
}
