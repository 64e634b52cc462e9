import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../src/embedded/ports.ts";
import { eventually } from "../support/eventually.ts";
import { findProgram } from "./programs.ts";

/** A pgbouncer before a database. */
export interface Pooler {
  url: string;
  /** What it has written. */
  log(): string;
  kill(): Promise<void>;
  /** Starts it again, on the port that it had. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Nobody: it does not run as root. */
const NOBODY = 65_534;

/** Starts pgbouncer in transaction mode with so few connections to the server that clients have to share them. */
export async function startPooler(databaseUrl: string, connections: number): Promise<Pooler> {
  const folder = await mkdtemp(join(tmpdir(), "roundhouse-pooler-"));
  await chmod(folder, 0o755);
  const program = await findProgram("pgbouncer", folder);
  const port = await freePort();
  const { hostname, port: far, username, password } = new URL(databaseUrl);
  const account = `user=${decodeURIComponent(username)} password=${decodeURIComponent(password)}`;
  const file = join(folder, "pgbouncer.ini");
  const lines = [
    "[databases]",
    `* = host=${hostname} port=${far} ${account}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
    `default_pool_size = ${connections}`,
    "max_client_conn = 200",
    "",
  ];
  await writeFile(file, lines.join("\n"));
  await chmod(file, 0o644);
  const who = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  let child: ChildProcess | null = null;
  let written = "";

  async function start(): Promise<void> {
    const before = written.length;
    const started = spawn(program.command, [file], {
      ...who,
      cwd: folder,
      env: { ...program.env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    child = started;
    for (const stream of [started.stdout, started.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => (written += text));
    await eventually(() => {
      if (started.exitCode !== null) throw new Error(`pgbouncer ended: ${written}`);
      return written.slice(before).includes("process up");
    });
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ended = child;
    child = null;
    if (ended === null) return;
    ended.kill(signal);
    await once(ended, "exit");
  }

  await start();
  const url = new URL(databaseUrl);
  url.hostname = "127.0.0.1";
  url.port = String(port);
  return {
    url: url.href,
    log: () => written,
    kill: () => end("SIGKILL"),
    start,
    async stop() {
      await end("SIGKILL");
      await rm(folder, { recursive: true, force: true });
    },
  };
}
