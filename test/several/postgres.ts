import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, chmod, chown, cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFailed, onTestFinished } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { freePort } from "../../src/embedded/ports.ts";
import { type PostgresBinaries, preparePostgres } from "../../src/embedded/postgres-binaries.ts";
import { run } from "../../src/embedded/process.ts";
import { asUser, findHome, type Home } from "../../src/embedded/server-user.ts";
import { eventually } from "../support/eventually.ts";

const LOGIN = "app";
const DATABASE = "roundhouse";
const STARTED_WITHIN_MS = 60_000;

/** A PostgreSQL server of a test. */
export interface Server {
  data: string;
  port: number;
  url: string;
  sql: Sql;
  /** Its settings for a replica that streams from it. */
  primaryConninfo: string;
  kill(): Promise<void>;
}

/** Servers whose data are folders of one place that ends with the test; PostgreSQL's user owns them. */
export interface Servers {
  /** A folder that the servers may write, for archived WAL. */
  makeFolder(name: string): Promise<string>;
  /** A new cluster with an empty database. */
  create(name: string, settings: Record<string, string>): Promise<Server>;
  /** A base backup of a running server, as files; nothing runs on it yet. */
  backUp(server: Server, name: string): Promise<string>;
  /** Starts a server on such files. `signal` is the file that says how: `standby.signal` or `recovery.signal`. */
  startFrom(data: string, settings: Record<string, string>, signal: string): Promise<Server>;
}

/** Opens a place for servers. */
export async function openServers(): Promise<Servers> {
  const folder = await mkdtemp(join(tmpdir(), "roundhouse-postgres-"));
  await chmod(folder, 0o711);
  const home = await findHome(folder);
  const binaries = await preparePostgres(home);
  const ends: (() => Promise<unknown>)[] = [];
  onTestFinished(async () => {
    for (const end of ends.toReversed()) await end();
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  });
  const start = async (data: string, settings: Record<string, string>) => {
    const server = await startOn(data, settings, home, binaries);
    ends.push(
      () => server.sql.end({ timeout: 1 }),
      () => server.kill(),
    );
    return server;
  };
  return {
    async makeFolder(name) {
      const made = join(folder, name);
      await mkdir(made);
      await own(home, made);
      return made;
    },
    async create(name, settings) {
      const data = join(folder, name);
      await mkdir(data);
      await own(home, data);
      const args = [
        "-D",
        data,
        "-U",
        LOGIN,
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--auth=trust",
      ];
      const made = await run(asUser(home.user, { command: binaries.initdb, args, env: binaries.env, cwd: folder }));
      if (made.code !== 0) throw new Error(`initdb: ${made.stderr}`);
      await appendFile(join(data, "pg_hba.conf"), "host replication all 127.0.0.1/32 trust\n");
      const server = await start(data, settings);
      const first = connect(urlOf(server.port, "postgres"), { name: "test", max: 1 });
      await first`create database ${first(DATABASE)}`;
      await first.end();
      return server;
    },
    async backUp(server, name) {
      const data = join(folder, name);
      // the backup lasts as long as its session
      const session = connect(urlOf(server.port, "postgres"), { name: "test", max: 1 });
      await session`select pg_backup_start('test', true)`;
      await cp(server.data, data, { recursive: true, filter: (path) => !path.endsWith("postmaster.pid") });
      const [label] = await session<{ text: string }[]>`select labelfile as text from pg_backup_stop()`;
      await session.end();
      await writeFile(join(data, "backup_label"), label?.text ?? "");
      for (const segment of await readdir(join(data, "pg_wal"))) {
        if (/^[0-9A-F]{24}$/.test(segment)) await rm(join(data, "pg_wal", segment));
      }
      await own(home, data);
      return data;
    },
    async startFrom(data, settings, signal) {
      await writeFile(join(data, signal), "");
      await own(home, data);
      return start(data, settings);
    },
  };
}

async function startOn(
  data: string,
  settings: Record<string, string>,
  home: Home,
  binaries: PostgresBinaries,
): Promise<Server> {
  const port = await freePort();
  const all = { listen_addresses: "127.0.0.1", port: String(port), unix_socket_directories: "", ...settings };
  const args = ["-D", data, ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
  const program = asUser(home.user, { command: binaries.postgres, args, env: binaries.env, cwd: home.folder });
  const child: ChildProcess = spawn(program.command, program.args, {
    cwd: home.folder,
    env: binaries.env,
    ...(program.uid !== undefined && { uid: program.uid }),
    ...(program.gid !== undefined && { gid: program.gid }),
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (log += text));
  onTestFailed(() => console.log(`${data} said at the end:\n${log.slice(-3_000)}`));
  const sql = connect(urlOf(port, DATABASE), { name: "test", max: 2 });
  const ready = connect(urlOf(port, "postgres"), { name: "test", max: 1 });
  await eventually(
    async () => {
      if (child.exitCode !== null) throw new Error(`PostgreSQL ended with ${child.exitCode}: ${log.slice(-2_000)}`);
      return (await ready`select 1`).length === 1;
    },
    { timeoutMs: STARTED_WITHIN_MS },
  );
  await ready.end();
  return {
    data,
    port,
    url: urlOf(port, DATABASE),
    sql,
    primaryConninfo: `host=127.0.0.1 port=${port} user=${LOGIN} application_name=replica`,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

function urlOf(port: number, database: string): string {
  return `postgres://${LOGIN}@127.0.0.1:${port}/${database}`;
}

/** Gives a folder and what is in it to PostgreSQL's user, as PostgreSQL requires. */
async function own({ user }: Home, folder: string): Promise<void> {
  await chmod(folder, 0o700);
  if (user.kind === "self") return;
  await chown(folder, user.uid, user.gid);
  for (const entry of await readdir(folder, { recursive: true })) await chown(join(folder, entry), user.uid, user.gid);
}
