import { request } from "node:https";
import type { TLSSocket } from "node:tls";
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { run } from "../../src/embedded/process.ts";
import { eventually } from "../support/eventually.ts";
import { openCookieClient } from "../support/cookie-client.ts";
import { secretsOf } from "./stack.ts";
import {
  call,
  CALLER,
  callingMeanwhile,
  expectNoSecretsInLogs,
  expectSpread,
  expectEnds,
  kill,
  untilNewer,
  type Ended,
  type World,
} from "./world.ts";

/** One claim about the stack; `show` gives what was seen. @throws Error if it does not hold. */
export interface Step {
  claim: string;
  show(world: World): Promise<string>;
  /** Left out with `--short`. */
  isLong?: true;
}

const LARGEST_BESIDE_BASE_MB = 250;
const DRAWN_WITHIN_MS = 120_000;
const BASE = "node:24-bookworm-slim";
const made = z.looseObject({ password: z.string() });
const bill = z.looseObject({ components: z.array(z.looseObject({ name: z.string() })) });
const checked = z.looseObject({ ok: z.literal(true), checked: z.looseObject({ rounds: z.number() }) });
const imported = z.looseObject({ read: z.number(), skipped: z.number() });
const restored = z.looseObject({ ok: z.literal(true), rows: z.number() });
const usage = z.looseObject({ day: z.looseObject({ requests: z.number() }) });

/** In order: each begins with what the ones before it left. */
export const STEPS: readonly Step[] = [
  { claim: "the image has production packages alone, a bill of materials, and runs as node", show: showImage },
  { claim: "two api, two workers and all they need become healthy", show: showStart },
  { claim: "the first admin and the first key are made by `cli`", show: showAdministration },
  { claim: "no secret is in a container's environment, and what faces callers reaches no server", show: showIsolation },
  { claim: "calls through the proxy reach both api, plots are drawn, the admin signs in", show: showCalls },
  { claim: "`cli` imports the rounds that it exported, and finds all of them stored", show: showImport },
  { claim: "the health check follows PORT", show: showHealthCheck },
  ...["worker", "api", "redis", "proxy", "postgres"].map((service): Step => ({
    claim: `kill -9 of ${service}: it is restarted by its policy, and rounds arrive again`,
    show: (world) => showKill(world, service),
  })),
  {
    claim: "nothing was lost: no gap stays open, every figure verifies, every answered call is counted",
    show: showNothingLost,
  },
  { claim: "scaled to 4 api and 4 workers and back to 2, no call is refused", show: showScaling, isLong: true },
  { claim: "no secret is in a log", show: expectNoSecretsInLogs },
  { claim: "a rolling upgrade refuses no call", show: showUpgrade, isLong: true },
  { claim: "HTTPS with a certificate of the operator, renewed without a restart", show: showTls, isLong: true },
  {
    claim: "a backup is restored into another database, which all use from then on",
    show: showRestore,
    isLong: true,
  },
  { claim: "after `down` and `up` everything is still there", show: showDownUp },
  { claim: "no secret is in a log after that either", show: expectNoSecretsInLogs },
];

async function showImage(world: World): Promise<string> {
  const { stack } = world;
  world.image = (await stack.script("deploy/build.sh")).trim().split("\n").at(-1) ?? "";
  const again = (await stack.script("deploy/build.sh")).trim();
  if (!again.includes(`${world.image} is built already`))
    throw new Error(`expected the same tag again, found ${again}`);
  const size = async (image: string) => Number(await stack.docker("image", "inspect", "--format", "{{.Size}}", image));
  const beside = ((await size(world.image)) - (await size(BASE))) / 1e6;
  if (beside >= LARGEST_BESIDE_BASE_MB) {
    throw new Error(`expected less than ${LARGEST_BESIDE_BASE_MB} MB beside the base, found ${beside.toFixed(0)}`);
  }
  const inImage = (command: string) => stack.docker("run", "--rm", "--entrypoint", "sh", world.image, "-c", command);
  const { components } = bill.parse(JSON.parse(await inImage("cat /app/sbom.cdx.json")));
  const names = components.map(({ name }) => name);
  const isRight = names.includes("bullmq") && !names.includes("vitest");
  const seen = await inImage(
    "whoami; roundhouse --version; ls /app/node_modules | grep -cx -e vitest -e typescript -e vite || true",
  );
  if (!isRight || seen !== "node\n0.1.0\n0\n") {
    throw new Error(`expected node, 0.1.0 and no development package, found ${seen} and ${names.length} components`);
  }
  return `${world.image}, ${beside.toFixed(0)} MB beside the base, ${names.length} packages in its bill of materials`;
}

async function showStart({ stack }: World): Promise<string> {
  await stack.compose("--profile", "monitoring", "--profile", "tls", "--profile", "cli", "config", "--quiet");
  await stack.compose("up", "--detach", "--no-build", "--wait", "--scale", "api=2", "--scale", "worker=2");
  return (await stack.compose("ps", "--format", "{{.Service}} {{.Status}}")).trim().split("\n").join("; ");
}

async function showAdministration(world: World): Promise<string> {
  const { stack } = world;
  const { email } = world.admin;
  const admin = await stack.cli("ops-user", "create", email, "--role", "admin", "--generate", "--json");
  world.admin.password = made.parse(JSON.parse(admin)).password;
  await stack.cli("account", "create", CALLER);
  world.key = (await stack.cli("key", "create", "--account", CALLER, "--plan", "Max")).trim();
  const houses = await stack.cli("house", "list");
  if (!houses.includes("bustabit")) throw new Error(`expected house list to name bustabit, found ${houses}`);
  const connections = /\d+ of \d+ connections/.exec(await stack.cli("doctor"))?.[0];
  if (connections === undefined) throw new Error("expected doctor to count the connections to PostgreSQL");
  return `house list and doctor answer; ${connections}`;
}

async function showIsolation(world: World): Promise<string> {
  const { stack } = world;
  const secrets = await secretsOf(stack);
  for (const service of ["api", "worker", "redis", "proxy", "demo-house"]) {
    const [id = ""] = await stack.containers(service);
    const facts = await stack.docker("inspect", id);
    const found = [...secrets].filter(([, secret]) => facts.includes(secret)).map(([name]) => name);
    if (found.length > 0)
      throw new Error(`expected no secret in what the engine knows of ${service}, found ${found.join(", ")}`);
  }
  const [worker = ""] = await stack.containers("worker");
  const mounted = await stack.docker("exec", worker, "ls", "/run/secrets");
  const urls = mounted.match(/database_url\w*/g) ?? [];
  if (urls.join() !== "database_url_worker") {
    throw new Error(`expected the worker to hold the login of its part alone, found ${mounted}`);
  }
  const isRefused = async (service: string, command: string) => {
    const [id = ""] = await stack.containers(service);
    await stack.docker("exec", id, "bash", "-c", `! ( ${command} ) 2> /dev/null`);
  };
  await isRefused("proxy", "exec 3<>/dev/tcp/postgres/5432");
  await isRefused("proxy", "exec 3<>/dev/tcp/redis/6379");
  await isRefused("demo-house", "exec 3<>/dev/tcp/postgres/5432");
  await isRefused("api", "touch /app/x");
  return `${secrets.size} secrets looked for in five services`;
}

async function showCalls(world: World): Promise<string> {
  const { stack, admin } = world;
  await untilNewer(world);
  const spread = await expectSpread(world, 2);
  const draws = async (path: string) => {
    const page = await fetch(stack.url + path, { signal: AbortSignal.timeout(30_000) });
    return /<figure[^>]*>(?:(?!<\/figure>).)*<svg/s.test(await page.text());
  };
  await eventually(() => draws("/accuracy?of=bustabit"), { timeoutMs: DRAWN_WITHIN_MS });
  const client = openCookieClient(stack.url, "198.51.100.7");
  const signedIn = await client.post("/ops/sign-in", admin);
  if (signedIn.status !== 303) throw new Error(`expected the admin to be signed in, got ${signedIn.status}`);
  // a session holds in both processes
  for (let n = 0; n < 6; n++) {
    const page = await client.get("/ops/");
    if (page.status !== 200) throw new Error(`expected /ops/ to be shown, got ${page.status}`);
  }
  return `calls by api: ${spread}; a plot at /accuracy`;
}

async function showImport({ stack }: World): Promise<string> {
  const script =
    "roundhouse export rounds --table bustabit/crash/global > /tmp/rounds.csv && " +
    "roundhouse import --table bustabit/crash/global --file /tmp/rounds.csv --json";
  const found = await stack.compose("run", "--rm", "-T", "--entrypoint", "sh", "cli", "-c", script);
  const { read, skipped } = imported.parse(JSON.parse(found));
  if (read === 0 || skipped !== read) throw new Error(`expected rounds that are all stored, found ${found}`);
  return `${read} rounds`;
}

async function showHealthCheck({ stack }: World): Promise<string> {
  const id = (await stack.compose("run", "--detach", "--no-deps", "--env", "PORT=4000", "api")).trim();
  try {
    const health = () => stack.docker("inspect", "--format", "{{.State.Health.Status}}", id);
    await eventually(async () => (await health()).trim() === "healthy", { timeoutMs: 60_000 });
  } finally {
    await stack.docker("rm", "--force", id);
  }
  return "healthy on port 4000";
}

async function showKill(world: World, service: string): Promise<string> {
  const counted = await callingMeanwhile(world, async () => {
    await kill(world, service);
    await untilNewer(world);
  });
  const allowed: Record<string, Ended[]> = { postgres: ["unavailable"], proxy: ["cut off", "unavailable"] };
  return expectEnds(counted, ...(allowed[service] ?? []));
}

async function showNothingLost(world: World): Promise<string> {
  const { stack } = world;
  await eventually(
    async () =>
      JSON.parse(await stack.cli("gap", "list", "--state", "open", "--house", "bustabit", "--json")).length === 0,
    {
      timeoutMs: DRAWN_WITHIN_MS,
    },
  );
  const { checked: figures } = checked.parse(JSON.parse(await stack.cli("verify", "--json")));
  const response = await fetch(`${stack.url}/api/v1/usage`, { headers: { "x-api-key": world.key } });
  const { requests } = usage.parse(await response.json()).day;
  if (requests < world.answered || requests > world.made) {
    throw new Error(`expected ${world.answered} to ${world.made} counted calls, found ${requests}`);
  }
  return `${figures.rounds} rounds verified; ${world.answered} calls answered, ${requests} counted, ${world.made} made`;
}

async function showScaling(world: World): Promise<string> {
  const { stack } = world;
  const scale = async (count: number) => {
    for (const service of ["api", "worker"]) {
      const up = ["up", "--detach", "--no-build", "--no-recreate", "--no-deps", "--wait"];
      await stack.compose(...up, "--scale", `${service}=${count}`, service);
    }
  };
  let spread = "";
  const counted = await callingMeanwhile(world, async () => {
    await scale(4);
    spread = await expectSpread(world, 4);
    await scale(2);
    await stack.healthy("api", 2);
    await untilNewer(world);
  });
  const connections = /\d+ of \d+ connections/.exec(await stack.cli("doctor"))?.[0];
  return `calls by api: ${spread}; ${expectEnds(counted)}; then ${connections}`;
}

async function showUpgrade(world: World): Promise<string> {
  const { stack } = world;
  const next = "0.1.0-next";
  await stack.docker("build", "--network", "host", "--build-arg", "REVISION=next", "--tag", `roundhouse:${next}`, ".");
  const counted = await callingMeanwhile(world, async () => {
    await stack.script("deploy/upgrade.sh", next);
    await untilNewer(world);
  });
  for (const service of ["api", "worker"]) {
    await stack.healthy(service, 2);
    for (const id of await stack.containers(service)) {
      const image = (await stack.docker("inspect", "--format", "{{.Config.Image}}", id)).trim();
      if (image !== `roundhouse:${next}`) throw new Error(`expected ${service} to run ${next}, found ${image}`);
    }
  }
  return expectEnds(counted);
}

async function showTls({ stack }: World): Promise<string> {
  const issue = async (name: string) => {
    const file = (ending: string) => join(stack.folder, `${name}.${ending}`);
    const subject = ["-subj", `/CN=${name}`, "-days", "2"];
    const keys = [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-keyout",
      file("key"),
      "-out",
      file("crt"),
      ...subject,
    ];
    const { code, stderr } = await run({ command: "openssl", args: keys });
    if (code !== 0) throw new Error(`openssl: ${stderr}`);
    const { stdout } = await run({ command: "cat", args: [file("crt"), file("key")] });
    await writeFile(file("pem"), stdout);
    await cp(file("pem"), join(stack.folder, "secrets/tls/site.pem"));
  };
  await issue("first.example");
  await stack.compose("up", "--detach", "--no-deps", "--no-build", "--wait", "tls");
  const seen = async () => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const options = {
      host: "127.0.0.1",
      port: stack.httpsPort,
      path: "/healthz",
      rejectUnauthorized: false,
      agent: false,
    };
    request(options, (response) => {
      const { subject } = (response.socket as TLSSocket).getPeerCertificate();
      resolve(`${response.statusCode} ${String(subject.CN)}`);
      response.resume();
    })
      .on("error", reject)
      .end();
    return promise;
  };
  await eventually(async () => (await seen()) === "200 first.example");
  const plain = await fetch(`http://127.0.0.1:${stack.redirectPort}/plans?x=1`, { redirect: "manual" });
  if (plain.status !== 308 || !plain.headers.get("location")?.startsWith("https://")) {
    throw new Error(`expected http to be redirected, got ${plain.status} ${plain.headers.get("location")}`);
  }
  await issue("second.example");
  await stack.compose("kill", "--signal", "USR2", "tls");
  await eventually(async () => (await seen()) === "200 second.example");
  return "200, a redirect, and a second certificate after SIGUSR2";
}

async function showRestore(world: World): Promise<string> {
  const { stack } = world;
  await stack.compose("stop", "api", "worker");
  const { checked: before } = checked.parse(JSON.parse(await stack.cli("verify", "--json")));
  await stack.cli("backup", "--to", "/backups/one.sql.gz");
  const { rows } = restored.parse(
    JSON.parse(await stack.cli("restore", "--from", "/backups/one.sql.gz", "--into", "fresh", "--json")),
  );
  await stack.script("deploy/secrets.sh", "fresh");
  await stack.compose(
    "up",
    "--detach",
    "--no-build",
    "--force-recreate",
    "--wait",
    "--scale",
    "api=2",
    "--scale",
    "worker=2",
  );
  const url = await stack.compose("run", "--rm", "-T", "--entrypoint", "sh", "cli", "-c", "roundhouse doctor || true");
  if (!url.includes("postgres:5432/fresh")) throw new Error("expected doctor to name the database fresh");
  await untilNewer(world);
  const { checked: after } = checked.parse(JSON.parse(await stack.cli("verify", "--json")));
  if (after.rounds < before.rounds) throw new Error(`expected ${before.rounds} rounds or more, found ${after.rounds}`);
  return `${rows} rows; ${before.rounds} rounds before, ${after.rounds} after`;
}

async function showDownUp(world: World): Promise<string> {
  const { stack } = world;
  const { checked: before } = checked.parse(JSON.parse(await stack.cli("verify", "--json")));
  await stack.compose("down");
  await stack.compose("up", "--detach", "--no-build", "--wait", "--scale", "api=2", "--scale", "worker=2");
  await eventually(async () => (await call(world)) === "answered");
  await untilNewer(world);
  const { checked: after } = checked.parse(JSON.parse(await stack.cli("verify", "--json")));
  if (after.rounds < before.rounds) throw new Error(`expected ${before.rounds} rounds or more, found ${after.rounds}`);
  return `${before.rounds} rounds before, ${after.rounds} after; the key still works`;
}
