import { randomBytes } from "node:crypto";
import { chown, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ROLES } from "../db/roles/role-grants.ts";
import { keepPassword } from "../config/keep-password.ts";
import { commandLine, endLeftover, isRunning } from "./pids.ts";
import { freePort, PORT_ATTEMPTS, PORT_TAKEN } from "./ports.ts";
import { type PostgresBinaries, preparePostgres } from "./postgres-binaries.ts";
import { dieWithUs, programOf, run, type RunningServer, startServer, stopServer } from "./process.ts";
import { type PrivateServer, watchServer } from "./private-server.ts";
import { openServerLog } from "./server-log.ts";
import { asUser, describeUser, findHome, type Home, type Reach } from "./server-user.ts";

const DATABASE = "roundhouse";
/** The login of the program: no superuser, and makes neither roles nor databases. */
const LOGIN = "app";

/** A fast shutdown needs a moment for its checkpoint; after an immediate one the next start recovers from the log. */
const STOP = [
  { signal: "SIGINT", waitMs: 8_000 },
  { signal: "SIGQUIT", waitMs: 3_000 },
] as const;

/** One who was left behind may have a whole night of changes to write. */
const STOP_LEFTOVER = [
  { signal: "SIGINT", waitMs: 60_000 },
  { signal: "SIGQUIT", waitMs: 5_000 },
  { signal: "SIGKILL", waitMs: 5_000 },
] as const;

/** Replaying what a crash left can take minutes on a slow disk. */
const START_MS = 600_000;

/** Beyond the numbers that any system gives to a process. */
const NO_ONE = 2_147_483_647;

/** The last processes of a killed server leave within moments. */
const LEAVING = /shared memory block .* still in use/;
const LEAVING_ATTEMPTS = 50;

/**
 * Starts the private PostgreSQL of a data folder on a free loopback port, makes its cluster and the app's database
 * where they are missing, and recovers what a crash left. The caller holds the claim on the folder. `durable: false`
 * is for tests: a power cut may then ruin it, and a database is cloned in 55 ms instead of 300.
 */
export async function startPostgres(options: {
  dataDir: string;
  say: (line: string) => void;
  durable?: boolean;
  /** Gives the login the rights of a superuser: for tests that change settings or skip triggers. */
  superuser?: boolean;
  reach?: Reach;
  pickPort?: () => Promise<number>;
}): Promise<PrivateServer> {
  const { dataDir, say, durable = true, superuser = false, pickPort = freePort } = options;
  const home = await findHome(dataDir, options.reach);
  if (home.folder !== dataDir)
    say(`PostgreSQL keeps its data in ${home.folder}, since ${describeUser(home.user)} cannot reach ${dataDir}`);
  const cluster: Cluster = {
    durable,
    home,
    data: join(home.folder, "pg"),
    dataDir,
    binaries: await preparePostgres(home),
    wrap: await dieWithUs("INT"),
  };
  const { password, isNew } = await keepPassword(join(dataDir, "postgres.password"));
  const slow = setTimeout(
    () => say("PostgreSQL is still starting: it may be recovering what its last run left unfinished"),
    5_000,
  );
  try {
    await clearPidFile(cluster.data);
    await makeCluster(cluster, say);
    if (!(await hasDatabase(cluster))) await alone(cluster, makeDatabase(password));
    // The old one was lost.
    else if (isNew) await alone(cluster, [`alter role ${LOGIN} password '${password}'`]);
    if (superuser) await alone(cluster, [`alter role ${LOGIN} superuser`]);
    const { port, ended, stop } = await launch(cluster, pickPort);
    return { url: `postgres://${LOGIN}:${password}@127.0.0.1:${port}/${DATABASE}`, ended, stop };
  } finally {
    clearTimeout(slow);
  }
}

interface Cluster {
  home: Home;
  data: string;
  dataDir: string;
  binaries: PostgresBinaries;
  wrap: string[];
  durable: boolean;
}

/**
 * A command of PostgreSQL for its user, which ends with this process. Its arguments and its environment show the data
 * folder.
 */
function command({ home, binaries, dataDir, wrap }: Cluster, path: string, args: string[]) {
  const env = { ...binaries.env, DATA_DIR: dataDir };
  return asUser(home.user, programOf([...wrap, path, ...args], { env, cwd: home.folder }));
}

/**
 * PostgreSQL refuses to start if postmaster.pid names a living process. Our server of an earlier run, still writing or left
 * behind, is ended. If the pid belongs to another process now, or to a zombie, it is replaced in the file. The file is
 * kept: with its other lines PostgreSQL detects processes of a killed server.
 */
async function clearPidFile(data: string): Promise<void> {
  const file = join(data, "postmaster.pid");
  const text = await readFile(file, "utf8").catch(() => "");
  const pid = Math.abs(Number(text.split("\n")[0])); // negative: single-user mode
  if (!Number.isInteger(pid) || pid === 0) return;
  if ((await isRunning(pid)) && (await commandLine(pid)).includes(` -D ${data} `))
    await endLeftover(pid, STOP_LEFTOVER);
  else await writeFile(file, text.replace(/^-?\d+/, `${NO_ONE}`));
}

/**
 * Makes the cluster where there is none, under another name until it is complete, so that half of one is never taken
 * for one.
 */
async function makeCluster(cluster: Cluster, say: (line: string) => void): Promise<void> {
  const { home, data, binaries } = cluster;
  if ((await stat(data).catch(() => null)) !== null) return;
  say(`making the private PostgreSQL in ${data}`);
  const drafts = (await readdir(home.folder)).filter((name) => name.startsWith("pg.new"));
  // An initdb that was killed with its app a moment ago may still be writing.
  for (const name of drafts) await rm(join(home.folder, name), { recursive: true, force: true, maxRetries: 10 });
  // It may also still be deleting its own files by name: so each attempt uses another name.
  const draft = await mkdtemp(`${data}.new.`);
  const passwordFile = `${draft}.password`;
  await writeFile(passwordFile, randomBytes(32).toString("hex"), { mode: 0o600 });
  if (home.user.kind === "other") {
    for (const path of [draft, passwordFile]) await chown(path, home.user.uid, home.user.gid);
  }
  const { code, stdout, stderr } = await run(
    command(cluster, binaries.initdb, [
      `--pgdata=${draft}`,
      "--username=postgres",
      `--pwfile=${passwordFile}`, // of the superuser, whom makeDatabase then keeps from logging in
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      // Letters are ordered by code point and known by Unicode, the same on every system, whatever locales it has.
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      // Nothing in it is worth waiting for yet.
      "--no-sync",
    ]),
    { timeoutMs: 120_000 },
  );
  await rm(passwordFile, { force: true });
  if (code !== 0)
    throw new Error(`the private PostgreSQL could not be made in ${data}: ${stderr.trim() || stdout.trim()}`);
  await rename(draft, data);
}

/**
 * The statements that make the database and its login, which owns the database and may take the role of each part of the
 * program, and nothing else. The database comes last: when it is there, all of it is.
 */
function makeDatabase(password: string): string[] {
  const make = (role: string, options: string) =>
    `do $$ begin if to_regrole('${role}') is null then create role ${role} ${options}; end if; end $$`;
  return [
    "alter role postgres nologin password null",
    make(LOGIN, "login"),
    `alter role ${LOGIN} password '${password}'`,
    ...Object.values(ROLES).flatMap((role) => [make(role, "nologin"), `grant ${role} to ${LOGIN}`]),
    `create database ${DATABASE} owner ${LOGIN}`,
  ];
}

async function hasDatabase(cluster: Cluster): Promise<boolean> {
  const rows = await alone(cluster, [`select 1 as found from pg_database where datname = '${DATABASE}'`]);
  return rows.includes('found = "1"');
}

/** Runs statements of a line each in single-user mode: no port, password or client is needed, and it takes 40 ms. */
async function alone(cluster: Cluster, statements: readonly string[]): Promise<string> {
  const program = command(cluster, cluster.binaries.postgres, [
    "--single",
    "-D",
    cluster.data,
    ...settings(cluster),
    "postgres",
  ]);
  for (let attempt = 1; ; attempt++) {
    const { code, stdout, stderr } = await run(program, { input: `${statements.join("\n")}\n`, timeoutMs: START_MS });
    // A failed statement does not fail the program.
    const problem = /(?:ERROR|FATAL|PANIC): [^]*$/.exec(stderr)?.[0] ?? (code === 0 ? null : stderr);
    if (problem === null) return stdout;
    const passes = LEAVING.test(problem) && attempt < LEAVING_ATTEMPTS;
    if (!passes) throw new Error(`the private PostgreSQL in ${cluster.data} does not start: ${problem.trim()}`);
    await delay(200);
  }
}

async function launch(
  cluster: Cluster,
  pickPort: () => Promise<number>,
): Promise<{ port: number } & Omit<PrivateServer, "url">> {
  const log = await openServerLog(join(cluster.dataDir, "postgres.log"));
  try {
    for (let attempt = 1; ; attempt++) {
      const port = await pickPort();
      const logged = await log.size();
      const args = ["-D", cluster.data, "-p", `${port}`, ...settings(cluster)];
      const program = command(cluster, cluster.binaries.postgres, args);
      const server = await startServer(program, { logFd: log.fd, lastSignal: "SIGINT" });
      if (await becomesReady(server, cluster)) return { port, ...watchServer(server, log, logged, STOP) };
      const how = server.hasExited() ? `stopped (${await server.exited})` : `was not ready within ${START_MS / 1000} s`;
      await stopServer(server, STOP);
      const words = await log.since(logged);
      const passes = PORT_TAKEN.test(words) && attempt < PORT_ATTEMPTS;
      if (!passes) throw new Error(`the private PostgreSQL in ${cluster.data} ${how}: ${words}`);
    }
  } catch (error) {
    await log.close();
    throw error;
  }
}

function settings({ durable }: Cluster): string[] {
  const chosen = [
    "listen_addresses=127.0.0.1", // no one else's business
    "unix_socket_directories=", // no second way in, and no path too long for a socket
    "timezone=UTC", // every time we show is UTC
    "log_timezone=UTC",
    "log_checkpoints=off", // one line every five minutes that no one reads
  ];
  const fast = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"];
  return [...chosen, ...(durable ? [] : fast)].flatMap((setting) => ["-c", setting]);
}

/** Waits until the server writes that it takes connections; false once it has ended or its time is over. */
async function becomesReady(server: RunningServer, cluster: Cluster): Promise<boolean> {
  const deadline = performance.now() + START_MS;
  while (!server.hasExited() && performance.now() < deadline) {
    const lines = (await readFile(join(cluster.data, "postmaster.pid"), "utf8").catch(() => "")).split("\n");
    // Line 8 is the state; line 1 is the pid, which differs in the file of an earlier server.
    if (Number(lines[0]) === server.pid && lines[7]?.trim() === "ready") return true;
    await delay(10);
  }
  return false;
}
