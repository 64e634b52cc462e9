import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { eventually } from "../support/eventually.ts";
import { secretsOf, type Stack, words } from "./stack.ts";

/** What the steps share: the stack, and what the first ones made. */
export interface World {
  stack: Stack;
  /** `roundhouse:VERSION-COMMIT`. */
  image: string;
  key: string;
  admin: { email: string; password: string };
  /** Calls that were answered with 200, and all that were made. */
  answered: number;
  made: number;
}

export const CALLER = "caller@example.com";
const PACE_MS = 40; // below what plan Max refills
const PATIENCE_MS = 120_000;

/**
 * How a call ended. `busy`: an api refused it with 503, since it could not count it in time, as happens on a machine that
 * starts eight processes; `unavailable`: the proxy found no api.
 */
export type Ended = "answered" | "busy" | "unavailable" | "cut off" | `status ${number}`;

/** One call through the proxy, on a connection of its own. */
export async function call(world: World, path = "/api/v1/games"): Promise<Ended> {
  world.made++;
  const headers = { "x-api-key": world.key, connection: "close" };
  const signal = AbortSignal.timeout(20_000);
  const response = await fetch(world.stack.url + path, { headers, signal }).catch(() => null);
  await response?.arrayBuffer().catch(() => undefined);
  if (response === null) return "cut off";
  if (response.status === 503) return response.headers.has("x-request-id") ? "busy" : "unavailable";
  if (response.status !== 200) return `status ${response.status}`;
  world.answered++;
  return "answered";
}

/** Makes calls all the time while `work` runs; gives how many ended in which way. */
export async function callingMeanwhile(world: World, work: () => Promise<unknown>): Promise<Map<Ended, number>> {
  const counted = new Map<Ended, number>();
  let isOver = false;
  const calling = (async () => {
    while (!isOver) {
      const ended = await call(world);
      counted.set(ended, (counted.get(ended) ?? 0) + 1);
      await delay(PACE_MS);
    }
  })();
  try {
    await work();
  } finally {
    isOver = true;
    await calling;
  }
  return counted;
}

/** @throws Error if a call ended in another way than answered, busy or one of `also`, or none was answered. */
export function expectEnds(counted: Map<Ended, number>, ...also: Ended[]): string {
  const text = [...counted].map(([ended, count]) => `${count} ${ended}`).join(", ");
  const others = [...counted.keys()].filter((ended) => !["answered", "busy", ...also].includes(ended));
  if (others.length > 0 || !counted.has("answered")) throw new Error(`expected calls to be answered, found ${text}`);
  return text;
}

const rounds = z.looseObject({
  tables: z.array(z.looseObject({ rounds: z.array(z.looseObject({ round_id: z.string() })) })),
});

/** The id of the newest round of bustabit that callers see. */
async function newest(world: World): Promise<number> {
  return eventually(async () => {
    world.made++;
    const response = await fetch(`${world.stack.url}/api/v1/rounds?house=bustabit&limit=1`, {
      headers: { "x-api-key": world.key, connection: "close" },
    });
    if (response.status !== 200) return false;
    world.answered++;
    return Number(rounds.parse(await response.json()).tables[0]?.rounds[0]?.round_id ?? 0);
  });
}

/** Waits until callers see newer rounds than now. */
export async function untilNewer(world: World): Promise<void> {
  const before = await newest(world);
  await eventually(async () => (await newest(world)) > before, { timeoutMs: PATIENCE_MS });
}

/** Makes calls until each `api` has answered some; gives how many each did, by its own log. */
export async function expectSpread(world: World, apis: number): Promise<string> {
  const ids = await world.stack.containers("api");
  if (ids.length !== apis) throw new Error(`expected ${apis} containers of api, found ${ids.length}`);
  const since = new Date().toISOString();
  const counts = await eventually(
    async () => {
      for (let n = 0; n < 5 * apis; n++) await call(world);
      const log = await world.stack.compose("logs", "--no-color", "--since", since, "api");
      const lines = log.split("\n").filter((line) => line.includes('"path":"/api/v1/games"'));
      const each = Map.groupBy(lines, (line) => line.split("|")[0]?.trim());
      return each.size === apis && [...each.values()].map(({ length }) => length);
    },
    { timeoutMs: PATIENCE_MS },
  );
  return counts.join(", ");
}

/** Sends SIGKILL to the first process of a service's first container, as a crash does, and waits until its policy restarts it. */
export async function kill(world: World, service: string): Promise<void> {
  const { stack } = world;
  const ids = await stack.containers(service);
  const [id = ""] = ids;
  const facts = async () =>
    words(await stack.docker("inspect", "--format", "{{.State.Pid}} {{.RestartCount}} {{.State.Running}}", id));
  const [pid = "", before = ""] = await facts();
  // `docker kill` would count as a stop by the operator, after which nothing is restarted
  const shell = ["--entrypoint", "sh", world.image, "-c", `kill -9 ${pid}`];
  await stack.docker("run", "--rm", "--pid", "host", "--user", "0:0", ...shell);
  await eventually(
    async () => {
      const [, restarts, isRunning] = await facts();
      return Number(restarts) > Number(before) && isRunning === "true";
    },
    { timeoutMs: PATIENCE_MS },
  );
  await stack.healthy(service, ids.length);
}

/** @throws Error if a secret, the admin's password or the key of the caller is in the log of any container. */
export async function expectNoSecretsInLogs(world: World): Promise<string> {
  const log = await world.stack.compose("logs", "--no-color");
  if (!log.includes('"path":"/api/v1/games"')) throw new Error("expected requests in the log, found none");
  const secrets = await secretsOf(world.stack);
  secrets.set("the admin's password", world.admin.password);
  secrets.set("the caller's key", world.key);
  const found = [...secrets].filter(([, secret]) => log.includes(secret)).map(([name]) => name);
  if (found.length > 0) throw new Error(`expected no secret in the logs, found ${found.join(", ")}`);
  return `${log.split("\n").length} lines, ${secrets.size} secrets looked for`;
}
