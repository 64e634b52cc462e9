import { randomBytes } from "node:crypto";
import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { freePort } from "../../src/embedded/ports.ts";
import { type Outcome, run } from "../../src/embedded/process.ts";
import { eventually } from "../support/eventually.ts";
import type { Engine } from "./engine.ts";

const ROOT = join(import.meta.dirname, "../..");
const STEP_WITHIN_MS = 600_000;
const HEALTHY_WITHIN_MS = 120_000;

/** A copy of the checkout as an operator has it, and its containers, under a project name of its own. */
export interface Stack {
  folder: string;
  url: string;
  httpsPort: number;
  redirectPort: number;
  /** `docker compose …`; gives stdout. @throws Error with what it printed if it fails. */
  compose(...args: string[]): Promise<string>;
  docker(...args: string[]): Promise<string>;
  /** A script of the checkout, such as `deploy/secrets.sh`. */
  script(file: string, ...args: string[]): Promise<string>;
  /** `docker compose run --rm cli …`; gives stdout. */
  cli(...args: string[]): Promise<string>;
  /** Ids of the containers of a service. */
  containers(service: string): Promise<string[]>;
  /** Waits until a service has so many containers and each is healthy. */
  healthy(service: string, count: number): Promise<void>;
}

/** Copies what git knows into `folder`, commits it there, and makes the secrets. Starts nothing. */
export async function openStack(folder: string, engine: Engine): Promise<Stack> {
  await copyCheckout(folder);
  const [http, https, redirect, grafana] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const env = {
    ...engine.env,
    COMPOSE_PROJECT_NAME: `roundhouse-test-${randomBytes(4).toString("hex")}`,
    COMPOSE_FILE: engine.hasOfficialPostgres ? "docker-compose.yml" : "docker-compose.yml:stand-in.yml",
    COMPOSE_PROFILES: "demo",
    HTTP_ADDRESS: `127.0.0.1:${http}`,
    HTTPS_ADDRESS: `127.0.0.1:${https}`,
    REDIRECT_ADDRESS: `127.0.0.1:${redirect}`,
    GRAFANA_ADDRESS: `127.0.0.1:${grafana}`,
    FRONT_SUBNET: `10.84.${randomBytes(1)[0]}.0/24`,
    BUILD_FLAGS: "--network host",
    // the engine's own builder where buildx is missing
    DOCKER_BUILDKIT:
      (await run({ command: "docker", args: ["buildx", "version"], env: engine.env })).code === 0 ? "1" : "0",
  };
  const call = async (command: string, args: string[]) =>
    stdoutOf(
      `${command} ${args.join(" ")}`,
      await run({ command, args, cwd: folder, env }, { timeoutMs: STEP_WITHIN_MS }),
    );
  const stack: Stack = {
    folder,
    url: `http://127.0.0.1:${http}`,
    httpsPort: https,
    redirectPort: redirect,
    compose: (...args) => call("docker", ["compose", ...args]),
    docker: (...args) => call("docker", args),
    script: (file, ...args) => call(join(folder, file), args),
    cli: (...args) => call("docker", ["compose", "run", "--rm", "-T", "cli", ...args]),
    containers: async (service) => words(await call("docker", ["compose", "ps", "--quiet", service])),
    async healthy(service, count) {
      await eventually(
        async () => {
          const ids = await stack.containers(service);
          if (ids.length !== count) return false;
          const states = words(await call("docker", ["inspect", "--format", "{{.State.Health.Status}}", ...ids]));
          return states.every((state) => state === "healthy");
        },
        { timeoutMs: HEALTHY_WITHIN_MS },
      );
    },
  };
  await stack.script("deploy/secrets.sh");
  // an image that is no official one gets its first password from the environment, since it may know no …_FILE
  const password = await readFile(join(folder, "secrets/postgres_password"), "utf8");
  const first = { environment: { POSTGRES_PASSWORD_FILE: "", POSTGRES_PASSWORD: password } };
  await writeFile(join(folder, "stand-in.yml"), JSON.stringify({ services: { postgres: first } }));
  return stack;
}

/** Every secret of a stack by name, without those that are empty or names. */
export async function secretsOf(stack: Stack): Promise<Map<string, string>> {
  const folder = join(stack.folder, "secrets");
  const found = new Map<string, string>();
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (!entry.isFile() || entry.name === "database_name") continue;
    const text = await readFile(join(folder, entry.name), "utf8");
    if (text !== "") found.set(entry.name, text);
  }
  return found;
}

/** The same content gives the same commit, and with it the same tag: a second run builds nothing. */
async function copyCheckout(folder: string): Promise<void> {
  const git = async (cwd: string, ...args: string[]) => {
    const when = "2026-01-01T00:00:00Z";
    const who = { GIT_AUTHOR_NAME: "test", GIT_AUTHOR_EMAIL: "test@example.com", GIT_AUTHOR_DATE: when };
    const also = { GIT_COMMITTER_NAME: "test", GIT_COMMITTER_EMAIL: "test@example.com", GIT_COMMITTER_DATE: when };
    const { PATH = "", HOME = "" } = process.env;
    return stdoutOf(`git ${args[0]}`, await run({ command: "git", args, cwd, env: { PATH, HOME, ...who, ...also } }));
  };
  const files = (await git(ROOT, "ls-files", "-z"))
    .split("\0")
    .filter((file) => file !== "" && !file.startsWith("test/"));
  for (const file of files) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await cp(join(ROOT, file), join(folder, file));
  }
  await git(folder, "init", "--quiet");
  await git(folder, "add", "--all");
  await git(folder, "commit", "--quiet", "--message", "copy");
}

function stdoutOf(what: string, { code, stdout, stderr }: Outcome): string {
  if (code !== 0) throw new Error(`${what.slice(0, 200)} ended with ${code}:\n${(stdout + stderr).slice(-3_000)}`);
  return stdout;
}

/** The words of a text. */
export function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
