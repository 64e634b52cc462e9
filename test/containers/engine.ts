import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../src/embedded/process.ts";

/** A container engine that answers, and how its images are made. */
export interface Engine {
  /** What every call of `docker` needs in its environment. */
  env: Record<string, string>;
  version: string;
  /** Whether `postgres` is the official image, whose entrypoint reads POSTGRES_PASSWORD_FILE. */
  hasOfficialPostgres: boolean;
  stop(): Promise<void>;
}

const MADE_WITHIN_MS = 900_000;
const POSTGRES = "postgres:18.4-bookworm";

/**
 * The engine of DOCKER_HOST or of the default socket; where none answers, one made from Debian's packages in `folder`.
 * @returns why there is none, in one line, where it cannot be made.
 */
export async function findEngine(folder: string): Promise<Engine | string> {
  const given = environment();
  const found = await describe(given, async () => undefined);
  if (found !== null) return found;
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  if (process.getuid?.() !== 0 || !/^VERSION_CODENAME=bookworm$/m.test(release)) {
    return "no container engine answers, and one is made as root on Debian 12 only";
  }
  console.log("no container engine answers: making one from Debian's packages");
  const socket = join(folder, "docker.sock");
  const made = await run(
    {
      command: "bash",
      args: [join(import.meta.dirname, "make-engine.sh"), join(import.meta.dirname, "../.."), folder],
    },
    { timeoutMs: MADE_WITHIN_MS },
  );
  const stop = async () => {
    const pid = Number(await readFile(join(folder, "dockerd.pid"), "utf8").catch(() => "0"));
    if (pid > 0) await run({ command: "sh", args: ["-c", `kill ${pid}; tail --pid=${pid} -f /dev/null`] });
  };
  if (made.code !== 0) {
    await stop();
    return `no container engine could be made: ${made.stderr.trim().split("\n").at(-1) ?? "no reason given"}`;
  }
  return (
    (await describe({ ...given, DOCKER_HOST: `unix://${socket}`, DOCKER_CONFIG: join(folder, "config") }, stop)) ??
    "the engine that was made does not answer"
  );
}

async function describe(env: Record<string, string>, stop: () => Promise<void>): Promise<Engine | null> {
  const info = await run({ command: "docker", args: ["info", "--format", "{{.ServerVersion}}"], env });
  const compose = await run({ command: "docker", args: ["compose", "version", "--short"], env });
  if (info.code !== 0 || compose.code !== 0) return null;
  const image = await run({
    command: "docker",
    args: ["image", "inspect", POSTGRES, "--format", "{{.Config.Entrypoint}}"],
    env,
  });
  return {
    env,
    version: `Docker ${info.stdout.trim()}, Compose ${compose.stdout.trim()}`,
    hasOfficialPostgres: image.code !== 0 || image.stdout.includes("docker-entrypoint.sh"),
    stop,
  };
}

function environment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
