import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServers } from "../../src/embedded/servers.ts";

/** PostgreSQL and Redis for one run of the suite. */
export interface TestServers {
  kind: "docker" | "embedded" | "urls";
  databaseUrl: string;
  redisUrl: string;
  stop(): Promise<void>;
}

/**
 * Containers where Docker answers, otherwise the same private servers that `npm start` brings. `wanted`, the value of
 * TEST_SERVERS, forces one: `docker`, `embedded`, or `urls` for servers that run already (`DATABASE_URL`, whose user
 * may create databases, and `REDIS_URL`).
 */
export async function startTestServers(
  wanted: string | undefined,
  urls: { databaseUrl: string | undefined; redisUrl: string | undefined },
): Promise<TestServers> {
  switch (wanted) {
    case "urls":
      return useGiven(urls);
    case "embedded":
      return startPrivate();
    case "docker":
      return startContainers();
    case undefined:
    case "":
      return (await dockerAnswers()) ? startContainers() : startPrivate();
    default:
      throw new Error(`TEST_SERVERS is "${wanted}": expected docker, embedded or urls`);
  }
}

function useGiven({ databaseUrl, redisUrl }: { databaseUrl: string | undefined; redisUrl: string | undefined }) {
  if (!databaseUrl || !redisUrl) throw new Error("TEST_SERVERS=urls needs DATABASE_URL and REDIS_URL");
  return { kind: "urls", databaseUrl, redisUrl, stop: async () => undefined } as const;
}

async function startPrivate(): Promise<TestServers> {
  const dataDir = await mkdtemp(join(tmpdir(), "roundhouse-test-"));
  const servers = await startServers({ dataDir, durable: false, say: (line) => console.error(line) });
  const stop = async () => {
    await servers.stop();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  };
  return { kind: "embedded", databaseUrl: servers.databaseUrl, redisUrl: servers.redisUrl, stop };
}

/** Takes milliseconds, also where there is no Docker. */
async function dockerAnswers(): Promise<boolean> {
  const { getContainerRuntimeClient } = await import("testcontainers");
  return getContainerRuntimeClient().then(
    () => true,
    () => false,
  );
}

async function startContainers(): Promise<TestServers> {
  const { GenericContainer, Wait } = await import("testcontainers");
  const [postgres, redis] = await Promise.all([
    new GenericContainer("postgres:18.4-bookworm")
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
      // once for the server that only runs while the database is made, once for the one that stays
      .withWaitStrategy(Wait.forLogMessage("database system is ready to accept connections", 2))
      .start(),
    new GenericContainer("redis:8-bookworm")
      .withCommand(["redis-server", "--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction"])
      .withExposedPorts(6379)
      .withWaitStrategy(Wait.forLogMessage("Ready to accept connections"))
      .start(),
  ]);
  return {
    kind: "docker",
    databaseUrl: `postgres://app:test@${postgres.getHost()}:${postgres.getMappedPort(5432)}/roundhouse`,
    redisUrl: `redis://${redis.getHost()}:${redis.getMappedPort(6379)}/0`,
    stop: async () => {
      await Promise.all([postgres.stop(), redis.stop()]);
    },
  };
}
