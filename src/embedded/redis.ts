import { mkdir, readFile, rename, rm } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { keepPassword } from "../config/keep-password.ts";
import { commandLine, endLeftover, isRunning, workingDirectory } from "./pids.ts";
import { freePort, PORT_ATTEMPTS, PORT_TAKEN } from "./ports.ts";
import { type PrivateServer, watchServer } from "./private-server.ts";
import { dieWithUs, programOf, type RunningServer, startServer, stopServer } from "./process.ts";
import { findRedis, type RedisSearch } from "./redis-binary.ts";
import { openServerLog } from "./server-log.ts";

/** On SIGTERM it writes the rest of its append-only file and exits. */
const STOP = [{ signal: "SIGTERM", waitMs: 8_000 }] as const;
const STOP_LEFTOVER = [
  { signal: "SIGTERM", waitMs: 10_000 },
  { signal: "SIGKILL", waitMs: 5_000 },
] as const;

/** What it writes when it stops over its own files: damaged in the middle, incomplete, or of a later version. */
const UNREADABLE =
  /Bad file format|Unexpected end of file|RDB preamble|Wrong signature|RDB format version|AOF manifest file|AOF file .* doesn't exist/i;

/** Reading a long log of changes takes its time. */
const START_MS = 300_000;

/**
 * Starts the private Redis of a data folder on a free loopback port. A torn end of its log of changes is cut off; a
 * log that it cannot read at all is put aside, which costs seconds, since Redis holds nothing that PostgreSQL does
 * not know better. The caller holds the claim on the folder. Throws where no Redis server can be had.
 */
export async function startRedis(options: RedisSearch & { pickPort?: () => Promise<number> }): Promise<PrivateServer> {
  const { dataDir, say, pickPort = freePort } = options;
  const binary = await findRedis(options);
  const { password } = await keepPassword(join(dataDir, "redis.password"));
  const folder = join(dataDir, "redis");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await endEarlier(folder);
  const env = { ...binary.env, DATA_DIR: dataDir };
  const program = programOf([...(await dieWithUs("TERM")), binary.command, "-"], { env, cwd: folder });
  const log = await openServerLog(join(dataDir, "redis.log"));
  try {
    let fresh = false;
    for (let attempt = 1; ; attempt++) {
      const port = await pickPort();
      const logged = await log.size();
      const server = await startServer(program, {
        logFd: log.fd,
        input: settings({ folder, port, password }),
        lastSignal: "SIGTERM",
      });
      if (await becomesReady(server, port, password)) {
        return { url: `redis://:${password}@127.0.0.1:${port}/0`, ...watchServer(server, log, logged, STOP) };
      }
      const how = server.hasExited() ? `stopped (${await server.exited})` : `was not ready within ${START_MS / 1000} s`;
      await stopServer(server, STOP);
      const words = await log.since(logged);
      if (PORT_TAKEN.test(words) && attempt < PORT_ATTEMPTS) continue;
      if (fresh || !server.hasExited() || !UNREADABLE.test(words))
        throw new Error(`the private Redis in ${folder} ${how}: ${words}`);
      await moveAside(folder, say);
      fresh = true;
    }
  } catch (error) {
    await log.close();
    throw error;
  }
}

/** They go through stdin: a password among the arguments could be read by anyone on the machine. */
function settings({ folder, port, password }: { folder: string; port: number; password: string }): string {
  return [
    "bind 127.0.0.1",
    `port ${port}`,
    `requirepass ${password}`,
    `dir ${quote(folder)}`,
    `pidfile ${quote(join(folder, "redis.pid"))}`, // by it the next start finds a server that outlived us
    'save ""', // no snapshots next to the log of changes
    "appendonly yes",
    "appendfsync everysec", // a crash may cost a second of messages, which the reconciler sends again
    "maxmemory-policy noeviction", // a queue that drops its jobs is none
    "",
  ].join("\n");
}

function quote(path: string): string {
  return `"${path.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** Two servers on one log of changes would ruin it. */
async function endEarlier(folder: string): Promise<void> {
  const file = join(folder, "redis.pid");
  const pid = Number(await readFile(file, "utf8").catch(() => ""));
  if (!Number.isInteger(pid) || pid <= 0 || !(await isRunning(pid))) return;
  const place = await workingDirectory(pid);
  const isOurs = place === null ? /(?:redis|valkey)-server/.test(await commandLine(pid)) : place === folder;
  if (isOurs) await endLeftover(pid, STOP_LEFTOVER);
  await rm(file, { force: true });
}

/** Moves the damaged data next to the folder. One damaged copy is kept for analysis. */
async function moveAside(folder: string, say: (line: string) => void): Promise<void> {
  const aside = `${folder}.damaged`;
  await rm(aside, { recursive: true, force: true });
  await rename(folder, aside);
  await mkdir(folder, { mode: 0o700 });
  say(
    `Redis cannot read its data: moved it to ${aside}, starting empty; nothing is lost, since PostgreSQL has all facts`,
  );
}

/** Waits until the server accepts our password; false if it has exited or the deadline has passed. */
async function becomesReady(server: RunningServer, port: number, password: string): Promise<boolean> {
  const deadline = performance.now() + START_MS;
  while (!server.hasExited() && performance.now() < deadline) {
    // Only our server knows this password: a stranger's on the same port does not pass for it.
    if ((await ask(port, `AUTH ${password}\r\nPING\r\n`)).startsWith("+OK\r\n+PONG")) return true;
    await delay(10);
  }
  return false;
}

/** The response of a Redis server to commands sent together: everything up to its second line, or nothing. */
async function ask(port: number, words: string): Promise<string> {
  return new Promise((resolve) => {
    let response = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(words)).setTimeout(1_000, () => socket.destroy());
    socket.setEncoding("utf8").on("data", (text: string) => {
      response += text;
      if (response.split("\r\n").length > 2) socket.destroy();
    });
    // Refused and reset mean: not yet.
    socket.on("error", () => undefined).once("close", () => resolve(response));
  });
}
