import { connect, type Socket } from "node:net";

/** A raw connection, and what was received on it. */
export interface Wire {
  socket: Socket;
  /** What was received so far. */
  text(): string;
  /** Milliseconds from the connection to its end. */
  ended: Promise<number>;
}

/** Connects and writes immediately; socket errors are ignored, since the server may close it at any time. */
export function dial(port: number, first: string | Buffer = "", options: { allowHalfOpen?: boolean } = {}): Wire {
  const startedAt = performance.now();
  const parts: Buffer[] = [];
  const socket = connect({ port, host: "127.0.0.1", ...options });
  if (first.length > 0) socket.write(first);
  socket.on("data", (part: Buffer) => parts.push(part));
  socket.on("error", () => undefined);
  const ended = new Promise<number>((resolve) => {
    const end = () => resolve(Math.round(performance.now() - startedAt));
    socket.once("end", end);
    socket.once("close", end);
  });
  return { socket, text: () => Buffer.concat(parts).toString("latin1"), ended };
}

/** Many of them, all open. */
export async function dialMany(count: number, port: number, first = ""): Promise<Wire[]> {
  const wires: Wire[] = [];
  while (wires.length < count) {
    const some = Array.from({ length: Math.min(200, count - wires.length) }, () => dial(port, first));
    await Promise.all(
      some.map(({ socket }) => new Promise<void>((resolve) => socket.once("connect", () => resolve()))),
    );
    wires.push(...some);
  }
  return wires;
}

/** Writes the same again and again, one piece each 250 ms, until the connection ends. */
export function drip(wire: Wire, piece: string): void {
  // after what arrived is read: a write to a connection that was reset meanwhile would discard it
  const timer = setInterval(() => setImmediate(() => wire.socket.write(piece)), 250);
  void wire.ended.then(() => clearInterval(timer));
}

/** Writes as much as the other side takes, until the connection ends; gives the bytes. */
export async function pour(wire: Wire, piece: Buffer): Promise<number> {
  let isOver = false;
  void wire.ended.then(() => (isOver = true));
  let bytes = 0;
  while (!isOver && !wire.socket.destroyed) {
    bytes += piece.length;
    if (wire.socket.write(piece)) await new Promise((resolve) => setImmediate(resolve));
    else await Promise.race([new Promise((resolve) => wire.socket.once("drain", resolve)), wire.ended]);
  }
  return bytes;
}

/** The statuses of the responses in a text, in order. */
export function statusesIn(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}
