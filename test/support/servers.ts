import { chmod, rm } from "node:fs/promises";
import { within } from "../../src/within.ts";
import { startServers } from "../../src/embedded/servers.ts";
import { reasonOf } from "../../src/errors.ts";
import { makeQuickFolder } from "./quick-folder.ts";

/** PostgreSQL and Redis for one run of the suite. */
export interface TestServers {
  kind: "containers" | "embedded" | "urls";
  databaseUrl: string;
  redisUrl: string;
  stop(): Promise<void>;
}

const IMAGES = ["postgres:18.4-bookworm", "redis:8-bookworm"] as const;
/** Images may have to be pulled first, about 200 MB; an engine that never reports an end must not hold up a run. */
const CONTAINERS_WITHIN_MS = 180_000;
const ENGINE_WITHIN_MS = 10_000;

/**
 * Containers if an engine responds and has the images or can pull them, otherwise the same private servers that `npm
 * start` brings, with a line that states why. `wanted`, the value of TEST_SERVERS, forces one: `containers`, `embedded`,
 * or `urls` for servers that run already (`DATABASE_URL`, whose user may create databases, and `REDIS_URL`).
 *
 * @throws Error if the servers that are forced cannot be used
 */
export async function startTestServers(
  wanted: string | undefined,
  urls: { databaseUrl: string | undefined; redisUrl: string | undefined },
  { containersWithinMs = CONTAINERS_WITHIN_MS }: { containersWithinMs?: number } = {},
): Promise<TestServers> {
  switch (wanted) {
    case "urls":
      return useGiven(urls);
    case "embedded":
      return startPrivate();
    case "containers":
      return startContainersWithin(containersWithinMs);
    case undefined:
    case "":
      if (!(await engineResponds())) return startPrivate();
      try {
        return await startContainersWithin(containersWithinMs);
      } catch (error) {
        const [reason] = reasonOf(error).split("\n");
        console.error(`a container engine responds and starts no containers (${reason}): using the embedded servers`);
        return startPrivate();
      }
    default:
      throw new Error(`TEST_SERVERS is "${wanted}": expected containers, embedded or urls`);
  }
}

function useGiven({ databaseUrl, redisUrl }: { databaseUrl: string | undefined; redisUrl: string | undefined }) {
  if (!databaseUrl || !redisUrl) throw new Error("TEST_SERVERS=urls needs DATABASE_URL and REDIS_URL");
  return { kind: "urls", databaseUrl, redisUrl, stop: async () => undefined } as const;
}

async function startPrivate(): Promise<TestServers> {
  const dataDir = await makeQuickFolder("roundhouse-test-");
  await chmod(dataDir, 0o711); // PostgreSQL may run as another user
  const servers = await startServers({ dataDir, durable: false, superuser: true, say: (line) => console.error(line) });
  const stop = async () => {
    await servers.stop();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  };
  return { kind: "embedded", databaseUrl: servers.databaseUrl, redisUrl: servers.redisUrl, stop };
}

/** Takes milliseconds, also without an engine. */
async function engineResponds(): Promise<boolean> {
  const { getContainerRuntimeClient } = await import("testcontainers");
  return within(ENGINE_WITHIN_MS, "a container engine", getContainerRuntimeClient()).then(
    () => true,
    () => false,
  );
}

/** Gives up after `withinMs`; containers that start later are stopped. */
async function startContainersWithin(withinMs: number): Promise<TestServers> {
  let isLate = false;
  const starting = startContainers().then(async (servers) => {
    if (isLate) await servers.stop();
    return servers;
  });
  try {
    return await within(withinMs, "starting PostgreSQL and Redis in containers", starting);
  } catch (error) {
    isLate = true;
    throw error;
  }
}

async function startContainers(): Promise<TestServers> {
  const { GenericContainer, Wait } = await import("testcontainers");
  const [postgresImage, redisImage] = IMAGES;
  const starts = await Promise.allSettled([
    new GenericContainer(postgresImage)
      .withEnvironment({
        POSTGRES_USER: "app",
        POSTGRES_PASSWORD: "test",
        POSTGRES_DB: "roundhouse",
        POSTGRES_INITDB_ARGS: "--encoding=UTF8 --locale-provider=builtin --builtin-locale=C.UTF-8",
      })
      // nothing here outlives the run
      .withCommand(["postgres", "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"])
      .withTmpFs({ "/var/lib/postgresql": "rw" })
      .withExposedPorts(5432)
      // the first is of the server that makes the database, the second of the one that stays
      .withWaitStrategy(Wait.forLogMessage("database system is ready to accept connections", 2))
      .start(),
    new GenericContainer(redisImage)
      // the engine publishes the port on every address of this machine
      .withCommand([
        "redis-server",
        "--requirepass",
        "test",
        "--appendonly",
        "yes",
        "--save",
        "",
        "--maxmemory-policy",
        "noeviction",
      ])
      .withExposedPorts(6379)
      .withWaitStrategy(Wait.forLogMessage("Ready to accept connections"))
      .start(),
  ]);
  const [postgres, redis] = starts.map((start) => (start.status === "fulfilled" ? start.value : null));
  if (!postgres || !redis) {
    await Promise.all([postgres?.stop(), redis?.stop()]);
    throw starts.find((start) => start.status === "rejected")?.reason;
  }
  return {
    kind: "containers",
    databaseUrl: `postgres://app:test@${postgres.getHost()}:${postgres.getMappedPort(5432)}/roundhouse`,
    redisUrl: `redis://:test@${redis.getHost()}:${redis.getMappedPort(6379)}/0`,
    stop: async () => {
      await Promise.all([postgres.stop(), redis.stop()]);
    },
  };
}
