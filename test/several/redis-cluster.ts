import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { freePort } from "../../src/embedded/ports.ts";
import { findRedis } from "../../src/embedded/redis-binary.ts";
import { eventually } from "../support/eventually.ts";

/** Three nodes, each with a third of the slots and no replica. */
export interface RedisCluster {
  url: string;
  nodes: ClusterNode[];
  stop(): Promise<void>;
}

/** One of them. */
export interface ClusterNode {
  port: number;
  /** Does something with it alone. */
  ask<Result>(work: (redis: Redis) => Promise<Result>): Promise<Result>;
  kill(): Promise<void>;
  /** Starts it again; it comes back with what it had. */
  start(): Promise<void>;
}

const SLOTS = 16_384;
const PASSWORD = "geheim";
/** After so long a silent node counts as gone. */
const NODE_TIMEOUT_MS = 1_000;

/** Starts them; `settings` are those of redis.conf, for every node. */
export async function startRedisCluster(settings: Record<string, string> = {}): Promise<RedisCluster> {
  const folder = await mkdtemp(join(tmpdir(), "roundhouse-cluster-"));
  const binary = await findRedis({
    dataDir: folder,
    cacheDir: join(homedir(), ".cache", "roundhouse"),
    say: () => undefined,
  });
  const nodes = await Promise.all(
    [0, 1, 2].map(async (n) => startNode(binary, join(folder, `node-${n}`), { ...settings })),
  );
  const [first] = nodes;
  if (first === undefined) throw new Error("there are no nodes");
  for (const [n, node] of nodes.entries()) {
    const [from, to] = [Math.ceil((n * SLOTS) / nodes.length), Math.ceil(((n + 1) * SLOTS) / nodes.length) - 1];
    await node.ask(async (redis) => redis.call("cluster", "addslotsrange", from, to));
    await node.ask(async (redis) => redis.call("cluster", "set-config-epoch", n + 1));
    await first.ask(async (redis) => redis.call("cluster", "meet", "127.0.0.1", node.port, node.busPort));
  }
  await eventually(async () => {
    const infos = await Promise.all(nodes.map((node) => node.ask(async (redis) => redis.cluster("INFO"))));
    return infos.every((info) => info.includes("cluster_state:ok") && info.includes("cluster_known_nodes:3"));
  });
  return {
    // found by two of them
    url: `redis+cluster://:${PASSWORD}@127.0.0.1:${nodes[0]?.port},127.0.0.1:${nodes[1]?.port}`,
    nodes,
    async stop() {
      await Promise.all(nodes.map((node) => node.kill()));
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function startNode(
  binary: { command: string; env: Record<string, string> },
  folder: string,
  settings: Record<string, string>,
): Promise<ClusterNode & { busPort: number }> {
  await mkdir(folder);
  const [port, busPort] = [await freePort(), await freePort()];
  const lines = Object.entries({
    bind: "127.0.0.1",
    port: String(port),
    "cluster-port": String(busPort),
    "cluster-enabled": "yes",
    "cluster-node-timeout": String(NODE_TIMEOUT_MS),
    requirepass: PASSWORD,
    masterauth: PASSWORD,
    dir: folder,
    appendonly: "yes",
    save: '""',
    "maxmemory-policy": "noeviction",
    ...settings,
  }).map(([name, value]) => `${name} ${value}`);
  let child: ChildProcess | null = null;

  async function ask<Result>(work: (redis: Redis) => Promise<Result>): Promise<Result> {
    const redis = new Redis({
      host: "127.0.0.1",
      port,
      password: PASSWORD,
      lazyConnect: true,
      maxRetriesPerRequest: 1,
      retryStrategy: () => null,
    });
    redis.on("error", () => undefined);
    try {
      await redis.connect();
      return await work(redis);
    } finally {
      redis.disconnect();
    }
  }

  async function start(): Promise<void> {
    child = spawn(binary.command, ["-"], { env: binary.env, cwd: folder, stdio: ["pipe", "ignore", "ignore"] });
    child.stdin?.end(lines.join("\n"));
    await eventually(() => ask(async (redis) => (await redis.ping()) === "PONG"));
  }

  await start();
  return {
    port,
    busPort,
    ask,
    start,
    async kill() {
      const killed = child;
      child = null;
      if (killed === null) return;
      killed.kill("SIGKILL");
      await once(killed, "exit");
    },
  };
}
