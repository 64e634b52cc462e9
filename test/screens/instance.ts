import { execFile, spawn } from "node:child_process";
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parse, stringify } from "yaml";
import { z } from "zod";
import type { DemoHouse } from "../../src/demo/serve.ts";
import { startDemoHouse } from "../../src/demo/server.ts";
import { startChain, usdtVariables } from "../support/chain.ts";
import { eventually } from "../support/eventually.ts";
import { KEY, SECRET, startProvider } from "../support/payment-app.ts";

/** A stock start may have to unpack its servers. */
const READY_WITHIN_MS = 180_000;
const STOPPED_WITHIN_MS = 30_000;
const COMMAND_WITHIN_MS = 120_000;

/** So that the pages of bank transfers exist; the number is the one that standards use as an example. */
const BANK = { BANK_BENEFICIARY: "Roundhouse Ltd", BANK_IBAN: "DE89370400440532013000" };
/** Blocks that confirm a deposit: more than are made here, so that one stays pending. */
const CONFIRMATIONS = 12;
/** The simulated house makes each of its faults once every four minutes; this fast, once in 30 s. */
const FAULTY_SPEED = 8;

const ready = z.object({ event: z.literal("ready"), url: z.string(), api_key: z.string(), ops_url: z.string() });
const housesFile = z.looseObject({
  houses: z.array(
    z.looseObject({ id: z.string(), tables: z.array(z.looseObject({ game: z.string(), pause_ms: z.number() })) }),
  ),
});

/** A running instance: `npm start` with an empty data folder and every payment method. */
export interface Instance {
  url: string;
  /** Signs the operator of this machine in, once. */
  opsUrl: string;
  apiKey: string;
  /** The connections to its private servers. */
  servers(): Promise<{ database_url: string; redis_url: string }>;
  /** The newest link with this path in a mail that was printed, since nothing sends mails; waits for it at most 20 s. */
  printedLink(path: string): Promise<string>;
  /** Adds a faulty house, and one that never responds, whose table stays without rounds. */
  addHouses(faulty: DemoHouse): Promise<void>;
  /** Sends USDT to an address on its chain. */
  sendUsdt(address: string, micros: bigint): Promise<unknown>;
  /** Runs `roundhouse` with these arguments and this text as input; gives what it prints. */
  command(words: readonly string[], input?: string): Promise<string>;
  stop(): Promise<void>;
}

/** A house that plays fast and with faults, to be added to the houses of an instance, and closed to open its circuit. */
export async function startFaultyHouse(): Promise<DemoHouse> {
  const dataDir = await mkdtemp(join(tmpdir(), "screens-house-"));
  const house = await startDemoHouse({ host: "127.0.0.1", port: 0, dataDir, speed: FAULTY_SPEED, seed: 7 });
  return { ...house, close: () => house.close().then(() => rm(dataDir, { recursive: true, force: true })) };
}

/**
 * Starts an instance on free ports and waits until it is ready.
 * @throws Error when it ends or is not ready within three minutes
 */
export async function startInstance(): Promise<Instance> {
  const folder = await mkdtemp(join(tmpdir(), "screens-"));
  const file = join(folder, "houses.yaml");
  await copyFile("houses.yaml", file);
  const [chain, app] = await Promise.all([startChain(), startProvider()]);
  const env = {
    ...process.env,
    ...BANK,
    ...usdtVariables(chain, { urls: [chain.url], confirmations: CONFIRMATIONS }),
    BINANCE_PAY_URL: app.url,
    BINANCE_PAY_KEY: KEY,
    BINANCE_PAY_SECRET: SECRET,
    DATA_DIR: folder,
    PORT: "0",
    LOG_LEVEL: "error",
    HOUSES_FILE: file,
    ALLOW_PRIVATE_HOUSES: "1",
  };
  const child = spawn(process.execPath, ["src/start.js", "up", "--json"], { env, stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  child.stderr.on("data", (bytes: Buffer) => {
    printed += String(bytes);
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const stop = async () => {
    child.kill("SIGTERM");
    const late = setTimeout(() => child.kill("SIGKILL"), STOPPED_WITHIN_MS);
    await ended;
    clearTimeout(late);
    const awake = setInterval(() => undefined, 1_000); // the process of the chain does not keep this one running
    await Promise.all([chain.stop(), app.close()]);
    clearInterval(awake);
    await rm(folder, { recursive: true, force: true });
  };
  const late = setTimeout(() => child.kill("SIGKILL"), READY_WITHIN_MS);
  for await (const line of createInterface({ input: child.stdout })) {
    const message = ready.safeParse(JSON.parse(line));
    if (!message.success) continue;
    clearTimeout(late);
    const { url, api_key: apiKey, ops_url: opsUrl } = message.data;
    return {
      url,
      apiKey,
      opsUrl,
      async servers() {
        const facts: unknown = JSON.parse(await readFile(join(folder, "run.json"), "utf8"));
        return z.object({ database_url: z.string(), redis_url: z.string() }).parse(facts);
      },
      printedLink: (path) => eventually(() => printed.match(new RegExp(`http\\S*${path}\\S*`, "g"))?.at(-1)),
      async addHouses({ url: at }) {
        await writeFile(file, await housesWith(at));
        child.kill("SIGHUP"); // not from the start: one house that is no demo turns demo money off
      },
      async sendUsdt(address, micros) {
        await chain.mine(1);
        return chain.transfer(address, micros);
      },
      command: (words, input) => runCommand(words, { env, input }),
      stop,
    };
  }
  await stop();
  throw new Error(
    `expected npm start to become ready within 3 minutes; it ended or was stopped: ${printed.slice(-2_000)}`,
  );
}

/** The stock houses file, and the simulated house twice: at this address, and where nothing listens. */
async function housesWith(url: string): Promise<string> {
  const { houses } = housesFile.parse(parse(await readFile("houses.yaml", "utf8")));
  const simulated = houses.find(({ id }) => id === "demo-simulated");
  if (simulated === undefined) throw new Error("expected the house demo-simulated in houses.yaml: follow its new name");
  const common = { ...simulated, demo: undefined, private: true, poll_every_ms: 500, requests_per_minute: 600 };
  const tables = simulated.tables.map((table) => ({ ...table, pause_ms: Math.round(table.pause_ms / FAULTY_SPEED) }));
  houses.push(
    { ...common, id: "airport", name: "Airport (simulated rounds)", base_url: url, tables },
    {
      ...common,
      id: "harbor",
      name: "Harbor (simulated rounds)",
      base_url: "http://127.0.0.1:2",
      tables: tables.slice(0, 1),
    },
  );
  return stringify({ houses });
}

function runCommand(
  words: readonly string[],
  { env, input }: { env: NodeJS.ProcessEnv; input: string | undefined },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      ["src/start.js", ...words],
      { env, timeout: COMMAND_WITHIN_MS },
      (error, stdout, stderr) =>
        error === null
          ? resolve(stdout)
          : reject(new Error(`roundhouse ${words.join(" ")} failed: ${stderr}`, { cause: error })),
    );
    child.stdin?.end(input ?? "");
  });
}
