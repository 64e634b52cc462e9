import { chmod, mkdtemp } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import type { Sql } from "../../src/db/client.ts";
import { migrate } from "../../src/db/migrate.ts";
import { makeCallers, type Caller } from "../simulate/callers.ts";
import { runCommand, type CommandContext } from "../simulate/run-command.ts";
import { startProcess, type ManagedProcess } from "../simulate/processes.ts";
import { type ServedHouses, serveHouses } from "../simulate/house.ts";
import { houseEntries, type HousesFile, writeHousesFile } from "../simulate/houses-file.ts";
import { removeFolder } from "../simulate/run-folder.ts";
import { startSimulatedServers, type SimulatedServers } from "../simulate/servers.ts";
import { startExternalServices, type ExternalServices } from "../simulate/external-services.ts";
import { drawTruth, type Truth } from "../simulate/truth.ts";
import { openHouseProxy } from "./house-proxy.ts";
import { watchPolls, type PollWatch } from "./poll-watch.ts";

const ROOT = join(import.meta.dirname, "../..");
const HOUSES = 4;
const TABLES = 2;
/** The house behind the door, whose mood a case may change. */
export const PROXIED_HOUSE = "h0";

/** One PostgreSQL, one Redis, two workers, an API and four houses, all of them real, for all cases after one another. */
export interface Testbed {
  servers: SimulatedServers;
  sql: Sql;
  truth: Truth;
  houses: readonly string[];
  served: ServedHouses;
  housesFile: HousesFile;
  services: ExternalServices;
  /** Workers at work; a case that ends one for good puts another in its place. */
  workers: ManagedProcess[];
  api: ManagedProcess;
  caller: Caller;
  houseProxy: Awaited<ReturnType<typeof openHouseProxy>>;
  polls: PollWatch;
  folder: string;
  /** Starts one more process with what all of them are given; the rest of its environment may be added to. */
  begin(name: string, args: readonly string[], env?: Record<string, string>): Promise<ManagedProcess>;
  env: Record<string, string>;
  commandContext: CommandContext;
  /** Runs a command as an operator does; returns what it prints. */
  command(args: readonly string[]): Promise<string>;
  /** What the API responds to a caller of its own with. */
  ask<Answer>(path: string): Promise<Answer>;
  /** Ends everything; keeps the logs and names their folder where `isKept`. */
  close(isKept: boolean): Promise<string | null>;
}

/** Starts the world. Takes some ten seconds. */
export async function startTestbed(say: (line: string) => void): Promise<Testbed> {
  const folder = await mkdtemp(join(tmpdir(), "roundhouse-faults-"));
  await chmod(folder, 0o711); // PostgreSQL may run as another user
  const servers = await startSimulatedServers(join(folder, "servers"), join(homedir(), ".cache", "roundhouse"), say);
  const { sql } = servers;
  const processes: ManagedProcess[] = [];
  const truth = drawTruth(1, { nowMs: Date.now(), houses: HOUSES, tablesPerHouse: TABLES });
  const served = await serveHouses(truth);
  const services = await startExternalServices(truth);
  const houseProxy = await openHouseProxy(served.url);
  let polls: PollWatch | undefined;
  async function close(isKept: boolean): Promise<string | null> {
    await polls?.close();
    await Promise.all(processes.map((managed) => managed.stop()));
    houseProxy.close();
    await served.close();
    await services.close();
    await servers.stop();
    if (!isKept) await removeFolder(folder);
    return isKept ? folder : null;
  }
  try {
    await migrate(servers.databaseUrl);
    const names = [...truth.houseFaults.keys()];
    const entries = houseEntries(truth, served.url).map((house) =>
      house.id === PROXIED_HOUSE ? { ...house, base_url: houseProxy.url } : house,
    );
    const housesFile = await writeHousesFile(sql, join(folder, "houses.yaml"), entries);
    const env = {
      DATABASE_URL: servers.databaseUrl,
      REDIS_URL: servers.redisUrl,
      HOUSES_FILE: housesFile.path,
      LOG_DIR: join(folder, "log"),
      ALLOW_PRIVATE_HOUSES: "1",
      LIVE_WINDOW_SECONDS: "60",
      LOG_LEVEL: "info",
      ...services.env,
    };
    const begin = async (name: string, args: readonly string[], more: Record<string, string> = {}) => {
      const managed = await startProcess(name, args, {
        root: ROOT,
        folder,
        dataFolder: folder,
        env: { ...env, ...more },
      });
      processes.push(managed);
      return managed;
    };
    const [api, ...workers] = await Promise.all([
      begin("api", ["api"]),
      begin("worker-0", ["worker"]),
      begin("worker-1", ["worker"]),
    ]);
    const [caller, , reader] = await makeCallers(sql);
    if (caller === undefined || reader === undefined) throw new Error("expected callers, got none");
    const commandContext = { root: ROOT, folder, env };
    const ask = async <Answer>(path: string) => {
      const response = await fetch(`${api.url()}/api/v1/${path}`, { headers: { "x-api-key": reader.key } });
      if (!response.ok) throw new Error(`expected ${path} to be served, found ${response.status}`);
      return (await response.json()) as Answer;
    };
    polls = watchPolls(sql, names);
    return {
      servers,
      sql,
      truth,
      houses: names,
      served,
      housesFile,
      services,
      workers,
      api,
      caller,
      houseProxy,
      polls,
      folder,
      begin,
      env,
      commandContext,
      ask,
      close,
      command: (args) => runCommand(commandContext, args),
    };
  } catch (error) {
    await close(true);
    throw new Error(`the testbed did not start; its logs are in ${folder}`, { cause: error });
  }
}
