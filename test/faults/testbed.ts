import { chmod, mkdtemp } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import type { Sql } from "../../src/db/client.ts";
import { migrate } from "../../src/db/migrate.ts";
import { makeCallers, type Caller } from "../simulate/callers.ts";
import { runCommand, type CommandContext } from "../simulate/run-command.ts";
import { startProcess, type ManagedProcess } from "../simulate/processes.ts";
import { type HouseServer, serveHouses } from "../simulate/house.ts";
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
/** The house behind the proxy, whose responses a case may replace. */
export const PROXIED_HOUSE = "h0";

/** One PostgreSQL, one Redis, two workers, an API and four houses, shared by all cases one after another. */
export interface Testbed {
  servers: SimulatedServers;
  sql: Sql;
  truth: Truth;
  houses: readonly string[];
  houseServer: HouseServer;
  housesFile: HousesFile;
  services: ExternalServices;
  /** A case that stops a worker permanently replaces it. */
  workers: ManagedProcess[];
  api: ManagedProcess;
  caller: Caller;
  houseProxy: Awaited<ReturnType<typeof openHouseProxy>>;
  polls: PollWatch;
  folder: string;
  /** Starts another process with the common environment and `env`. */
  begin(name: string, args: readonly string[], env?: Record<string, string>): Promise<ManagedProcess>;
  env: Record<string, string>;
  commandContext: CommandContext;
  /** Runs a command as an operator does. Returns its standard output. */
  command(args: readonly string[]): Promise<string>;
  /** Requests a path of the API with a key that no case uses. */
  request<Body>(path: string): Promise<Body>;
  /** Stops everything. Keeps the logs and returns their folder if `isKept`. */
  close(isKept: boolean): Promise<string | null>;
}

/** Starts the testbed. Takes about ten seconds. */
export async function startTestbed(say: (line: string) => void): Promise<Testbed> {
  const folder = await mkdtemp(join(tmpdir(), "roundhouse-faults-"));
  await chmod(folder, 0o711); // PostgreSQL may run as another user
  const servers = await startSimulatedServers(join(folder, "servers"), join(homedir(), ".cache", "roundhouse"), say);
  const { sql } = servers;
  const processes: ManagedProcess[] = [];
  const truth = drawTruth(1, { nowMs: Date.now(), houses: HOUSES, tablesPerHouse: TABLES });
  const houseServer = await serveHouses(truth);
  const services = await startExternalServices(truth);
  const houseProxy = await openHouseProxy(houseServer.url);
  let polls: PollWatch | undefined;
  async function close(isKept: boolean): Promise<string | null> {
    await polls?.close();
    await Promise.all(processes.map((managed) => managed.stop()));
    houseProxy.close();
    await houseServer.close();
    await services.close();
    await servers.stop();
    if (!isKept) await removeFolder(folder);
    return isKept ? folder : null;
  }
  try {
    await migrate(servers.databaseUrl);
    const names = [...truth.houseFaults.keys()];
    const entries = houseEntries(truth, houseServer.url).map((house) =>
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
    const request = async <Body>(path: string) => {
      const response = await fetch(`${api.url()}/api/v1/${path}`, { headers: { "x-api-key": reader.key } });
      if (!response.ok) throw new Error(`expected ${path} to return 200, found ${response.status}`);
      return (await response.json()) as Body;
    };
    polls = watchPolls(sql, names);
    return {
      servers,
      sql,
      truth,
      houses: names,
      houseServer,
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
      request,
      close,
      command: (args) => runCommand(commandContext, args),
    };
  } catch (error) {
    await close(true);
    throw new Error(`the testbed did not start; its logs are in ${folder}`, { cause: error });
  }
}
