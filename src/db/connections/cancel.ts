import { connect as connectSocket } from "node:net";
import type { Connection } from "./connection.ts";

/** The code of a CancelRequest in PostgreSQL's protocol, and how long it may take to send. */
const CANCEL_REQUEST = 80_877_102;
const CANCEL_MS = 5_000;

/** PostgreSQL's CancelRequest: a message on a new connection. If it fails, the statement ends at its deadline. */
export async function cancelOnServer({ backend, host, port }: Connection): Promise<void> {
  if (backend === null) return;
  const request = Buffer.alloc(16);
  request.writeInt32BE(request.length, 0);
  request.writeInt32BE(CANCEL_REQUEST, 4);
  request.writeInt32BE(backend.processId, 8);
  request.writeInt32BE(backend.secretKey, 12);
  const socket = host.startsWith("/") ? connectSocket(`${host}/.s.PGSQL.${port}`) : connectSocket(port, host);
  socket.setTimeout(CANCEL_MS, () => socket.destroy());
  socket.on("error", () => socket.destroy());
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.resume().end(request);
  await closed; // the server closes it when it has passed the request on
}
