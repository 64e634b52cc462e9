import { once } from "node:events";
import { createServer } from "node:http";
import { draw } from "../../src/demo/draw.ts";

/** How an extra house responds: never, or with some rounds of a table and megabytes of padding. */
export type ExtraHouseMode = "hangs" | "large";

/** The server of a house that is not part of the truth, with any number of tables; see `extraHouseEntry`. */
export interface ExtraHouse {
  url: string;
  /** Requests so far. */
  requests(): number;
  setMode(mode: ExtraHouseMode): void;
  close(): Promise<void>;
}

/** Below the limit of 4 MiB for a response. */
const LARGE_BYTES = 3_900_000;
/** The interval between two rounds of a table. */
const ROUND_MS = 3_000;
const LISTED = 3;

/** Starts the server in the mode "hangs". */
export async function serveExtraHouse(): Promise<ExtraHouse> {
  const sinceMs = Date.now();
  let mode: ExtraHouseMode = "hangs";
  let requests = 0;
  const padding = " ".repeat(LARGE_BYTES);
  const server = createServer((request, response) => {
    requests += 1;
    if (mode === "hangs") return;
    const path = request.url ?? "/";
    const newest = 1_000 + Math.floor((Date.now() - sinceMs) / ROUND_MS);
    const rounds = Array.from({ length: LISTED }, (_, n) => {
      const id = newest - n;
      return { id, multiplier: 1 + Math.floor(draw(id, path) * 400) / 100 };
    });
    response.setHeader("content-type", "application/json").end(JSON.stringify({ rounds }) + padding);
  });
  server.on("connection", (socket) => socket.on("error", () => undefined));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("expected a port for the extra house, got none");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests: () => requests,
    setMode: (next) => (mode = next),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
