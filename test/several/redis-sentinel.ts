import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { freePort } from "../../src/embedded/ports.ts";
import { findRedis } from "../../src/embedded/redis-binary.ts";
import { eventually } from "../support/eventually.ts";

const PASSWORD = "geheim";
const MASTER = "main";
/** After so long without a response sentinels agree that the master is gone. */
const DOWN_AFTER_MS = 2_000;

/** A master, two replicas of it, and three sentinels that watch them. */
export interface Watched {
  url: string;
  ports: number[];
  /** The port of the server that sentinels call the master now. */
  master(): Promise<number>;
  /** Kills the server on a port, as a crash does. */
  kill(port: number): Promise<void>;
  /** Starts it again; sentinels make a replica of it if another one leads. */
  start(port: number): Promise<void>;
  /** The role of the server on a port: master or slave. */
  role(port: number): Promise<string>;
  stop(): Promise<void>;
}

/** Starts all six and waits until each sentinel knows the others and both replicas. */
export async function startWatchedRedis(): Promise<Watched> {
  const folder = await mkdtemp(join(tmpdir(), "roundhouse-sentinel-"));
  const binary = await findRedis({
    dataDir: folder,
    cacheDir: join(homedir(), ".cache", "roundhouse"),
    say: () => undefined,
  });
  const running = new Map<number, ChildProcess>();
  const files = new Map<number, string[]>();

  async function start(port: number): Promise<void> {
    const child = spawn(binary.command, files.get(port) ?? [], { env: binary.env, cwd: folder, stdio: "ignore" });
    running.set(port, child);
    await eventually(() => ask(port, async (redis) => (await redis.ping()) === "PONG"));
  }
  async function add(lines: Record<string, string>, kind: "server" | "sentinel", more: string[] = []): Promise<number> {
    const port = await freePort();
    const place = join(folder, String(port));
    await mkdir(place);
    const all = { ...lines, port: String(port), bind: "127.0.0.1", dir: place };
    const text = [...Object.entries(all).map(([name, value]) => `${name} ${value}`), ...more];
    await writeFile(join(place, "redis.conf"), `${text.join("\n")}\n`);
    files.set(port, [join(place, "redis.conf"), ...(kind === "sentinel" ? ["--sentinel"] : [])]);
    await start(port);
    return port;
  }
  async function kill(port: number): Promise<void> {
    const child = running.get(port);
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, "exit");
    if (child.kill("SIGKILL")) await ended;
    running.delete(port);
  }

  const server = { requirepass: PASSWORD, masterauth: PASSWORD, appendonly: "yes", "maxmemory-policy": "noeviction" };
  const first = await add(server, "server");
  const replica = { ...server, replicaof: `127.0.0.1 ${first}` };
  const ports = [first, await add(replica, "server"), await add(replica, "server")];
  const watching = [
    `sentinel monitor ${MASTER} 127.0.0.1 ${first} 2`,
    `sentinel auth-pass ${MASTER} ${PASSWORD}`,
    `sentinel down-after-milliseconds ${MASTER} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${MASTER} 10000`,
  ];
  const sentinels: number[] = [];
  for (let n = 0; n < 3; n++) sentinels.push(await add({}, "sentinel", watching));
  const facts = (port: number) =>
    ask(
      port,
      async (redis) => {
        const flat = (await redis.call("sentinel", "master", MASTER)) as string[];
        return new Map(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? ""] as const] : [])));
      },
      false,
    );
  await eventually(
    async () => {
      const all = await Promise.all(sentinels.map(facts));
      return all.every((one) => one.get("num-slaves") === "2" && one.get("num-other-sentinels") === "2");
    },
    { timeoutMs: 60_000 },
  );

  return {
    url: `redis+sentinel://:${PASSWORD}@${sentinels.map((port) => `127.0.0.1:${port}`).join(",")}/${MASTER}`,
    ports,
    master: async () => Number((await facts(sentinels[0] ?? 0)).get("port")),
    kill,
    start,
    role: (port) => ask(port, async (redis) => /^role:(\w+)/m.exec(await redis.info("replication"))?.[1] ?? ""),
    async stop() {
      await Promise.all([...running.keys()].map(kill));
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };

  function ask<Result>(
    port: number,
    work: (redis: Redis) => Promise<Result>,
    hasPassword = !isSentinel(port),
  ): Promise<Result> {
    return askAt(port, hasPassword ? PASSWORD : undefined, work);
  }
  function isSentinel(port: number): boolean {
    return files.get(port)?.includes("--sentinel") ?? false;
  }
}

async function askAt<Result>(
  port: number,
  password: string | undefined,
  work: (redis: Redis) => Promise<Result>,
): Promise<Result> {
  const redis = new Redis({
    host: "127.0.0.1",
    port,
    ...(password !== undefined && { password }),
    lazyConnect: true,
    enableReadyCheck: false,
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
