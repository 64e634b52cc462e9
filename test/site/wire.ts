import { connect, createServer, type Socket } from "node:net";

/** A way to the database that a test can hold, as when a network is cut without a word, or cut, as when it stops. */
export interface Wire {
  /** The address of the database through the wire. */
  through(databaseUrl: string): Promise<string>;
  /** What is sent from now on arrives once it is let go. */
  hold(): void;
  letGo(): void;
  /** Ends all connections and takes no new one. */
  cut(): Promise<void>;
}

/** Opens a wire; `cut` it when done with it. */
export async function openWire(): Promise<Wire> {
  const sockets = new Set<Socket>();
  let target = { host: "", port: 0 };
  let isHeld = false;
  const server = createServer((near) => {
    const far = connect(target.port, target.host);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (bytes) => to.write(bytes));
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      if (isHeld) from.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    through(databaseUrl) {
      const url = new URL(databaseUrl);
      target = { host: url.hostname, port: Number(url.port) };
      url.hostname = "127.0.0.1";
      url.port = String(typeof address === "object" ? address?.port : "");
      return Promise.resolve(url.href);
    },
    hold() {
      isHeld = true;
      for (const socket of sockets) socket.pause();
    },
    letGo() {
      isHeld = false;
      for (const socket of sockets) socket.resume();
    },
    async cut() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
