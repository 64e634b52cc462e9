import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** The response faults of the proxied house. */
export const RESPONSE_FAULTS = ["429", "HTML", "10 MB", "slow-loris", "nothing", "not TLS", "reset"] as const;
export type ResponseFault = (typeof RESPONSE_FAULTS)[number];

const TEN_MEGABYTES = 10 << 20;
const DRIP_MS = 100;

/** Starts a TCP proxy in front of a house that can replace its responses by faulty ones. */
export async function openHouseProxy(houseUrl: string) {
  const housePort = Number(new URL(houseUrl).port);
  const sockets = new Set<Socket>();
  let fault: ResponseFault | null = null;
  const server = createServer((near) => {
    sockets.add(near);
    near.on("close", () => sockets.delete(near));
    near.on("error", () => undefined);
    if (fault === null) forward(near, housePort);
    else CAUSE[fault](near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("expected a port for the house proxy, got none");
  return {
    url: `http://127.0.0.1:${address.port}`,
    /** Sets the fault of new connections, null for none, and closes the open ones. */
    setFault(next: ResponseFault | null): void {
      fault = next;
      for (const socket of sockets) socket.destroy();
    },
    close(): void {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

function forward(near: Socket, port: number): void {
  const far = connect(port, "127.0.0.1");
  far.on("error", () => near.destroy());
  far.on("close", () => near.destroy());
  near.on("close", () => far.destroy());
  near.pipe(far).pipe(near);
}

/** The faults act after the first bytes of the request, except "nothing" and "reset". */
const CAUSE: Record<ResponseFault, (socket: Socket) => void> = {
  "429": (socket) => onRequest(socket, () => respond(socket, "429 Too Many Requests", "retry-after: 1\r\n", "later")),
  HTML: (socket) =>
    onRequest(socket, () =>
      respond(socket, "200 OK", "content-type: text/html\r\n", "<!doctype html><title>Back soon</title>"),
    ),
  "10 MB": (socket) =>
    onRequest(socket, () =>
      respond(socket, "200 OK", "content-type: application/json\r\n", Buffer.alloc(TEN_MEGABYTES, "[")),
    ),
  "slow-loris": (socket) =>
    onRequest(socket, () => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n");
      const timer = setInterval(() => socket.write("["), DRIP_MS);
      socket.on("close", () => clearInterval(timer));
    }),
  nothing: (socket) => void socket.resume(),
  "not TLS": (socket) => onRequest(socket, () => socket.end(Buffer.from("1603030031f00d", "hex"))),
  reset: (socket) => void socket.resetAndDestroy(),
};

function onRequest(socket: Socket, act: () => void): void {
  socket.once("data", act);
}

function respond(socket: Socket, status: string, headers: string, body: string | Buffer): void {
  socket.write(
    `HTTP/1.1 ${status}\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n`,
  );
  socket.end(body);
}
