import { once } from "node:events";
import { connect as connectTcp, createServer, type Server, type Socket } from "node:net";

/** One client's connection and the one that the proxy made to the server for it. */
interface Pair {
  near: Socket;
  far: Socket;
}

/** A TCP proxy in front of a server whose port may change. */
export interface Proxy {
  /** The port that faults affect. */
  port: number;
  /** A port that no fault affects, for observers. */
  plainPort: number;
  /** Resets every connection and refuses new ones for `forMs`. */
  cut(forMs: number): Promise<void>;
  /**
   * Stops forwarding in both directions on the connections that are open now, without closing either end: neither side
   * learns that the other one closed, as behind a firewall that forgot the connection. New connections work. Returns how
   * many were silenced.
   */
  silence(): number;
  /** Silences one connection: of those whose client port is given, the one that sent most. Returns how many: 0 or 1. */
  silenceBusiest(clientPorts: ReadonlySet<number>): number;
  /** Closes both ends of every silenced connection. */
  closeSilenced(): void;
  close(): Promise<void>;
}

/** Opens a proxy on loopback; `target` returns the server's port at each new connection. */
export async function openProxy(target: () => number): Promise<Proxy> {
  const open = new Set<Pair>();
  const silenced = new Set<Pair>();
  let isCut = false;

  function forward(near: Socket, isObserver: boolean): void {
    near.on("error", () => undefined);
    if (isCut && !isObserver) return void near.resetAndDestroy();
    const far = connectTcp(target(), "127.0.0.1");
    const pair = { near, far };
    far.on("error", () => undefined);
    const closeOther = (other: Socket) => () => {
      if (silenced.has(pair)) return;
      open.delete(pair);
      other.destroy();
    };
    far.on("close", closeOther(near));
    near.on("close", closeOther(far));
    near.pipe(far).pipe(near);
    near.setNoDelay(true);
    far.setNoDelay(true);
    if (!isObserver) open.add(pair);
  }

  function silence(pair: Pair): void {
    open.delete(pair);
    silenced.add(pair);
    const { near, far } = pair;
    near.unpipe(far).pause();
    far.unpipe(near).pause();
  }

  const [faulty, plain] = [
    await listen(createServer((socket) => forward(socket, false))),
    await listen(createServer((socket) => forward(socket, true))),
  ];
  const closeSilenced = () => {
    for (const { near, far } of silenced) {
      near.destroy();
      far.destroy();
    }
    silenced.clear();
  };
  return {
    port: faulty.port,
    plainPort: plain.port,
    async cut(forMs) {
      isCut = true;
      for (const { near } of open) near.resetAndDestroy();
      await new Promise((resolve) => setTimeout(resolve, forMs));
      isCut = false;
    },
    silence() {
      const pairs = [...open];
      pairs.forEach(silence);
      return pairs.length;
    },
    silenceBusiest(clientPorts) {
      const [busiest] = [...open]
        .filter(({ near }) => clientPorts.has(near.remotePort ?? 0))
        .toSorted((a, b) => b.near.bytesRead - a.near.bytesRead);
      if (busiest === undefined) return 0;
      silence(busiest);
      return 1;
    },
    closeSilenced,
    async close() {
      closeSilenced();
      for (const { near } of open) near.destroy();
      faulty.server.close();
      plain.server.close();
    },
  };
}

async function listen(server: Server): Promise<{ server: Server; port: number }> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  return { server, port: address.port };
}
