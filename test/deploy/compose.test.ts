import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { SECRET_SETTINGS } from "../../src/config/environment.ts";
import { SETTING_GROUPS } from "../../src/config/settings-text.ts";
import { VERSION } from "../../src/version.ts";

const ROOT = join(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
const compose = read("docker-compose.yml");
const { services, secrets } = z
  .looseObject({
    services: z.record(
      z.string(),
      z.looseObject({
        image: z.string(),
        init: z.boolean().default(false),
        environment: z.record(z.string(), z.string()).default({}),
        secrets: z.array(z.string()).default([]),
        ports: z.array(z.string()).default([]),
      }),
    ),
    secrets: z.record(z.string(), z.unknown()),
  })
  .parse(parse(compose, { merge: true }));

/** Settings that a service gets, also by the path of a file. */
function settingsOf(service: string): string[] {
  const secret = new Set<string>(SECRET_SETTINGS.map((name) => `${name}_FILE`));
  return Object.keys(services[service]?.environment ?? {}).map((name) =>
    secret.has(name) ? name.slice(0, -"_FILE".length) : name,
  );
}

/** Settings that no service gets, and why. */
const NOT_PASSED: Record<string, string> = {
  DATABASE_DIRECT_URL: "no pooler is in between",
  DATA_DIR: "the image sets it",
  HOST: "the image sets it",
  PORT: "the proxy and the health checks expect the default",
  WORKER_PORT: "Prometheus and the health checks expect the default",
  LOG_DIR: "workers share the volume of DATA_DIR",
  HOUSES_FILE: "it is mounted in its default place",
};

/** What workers get and commands do not need. */
const NOT_FOR_COMMANDS = [
  "NODE_OPTIONS",
  "LOG_LEVEL",
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "AUTH_SECRET_PREVIOUS",
  "METRICS_TOKEN",
  "ALERT_EMAIL",
  "STAFF_WEBHOOK_URL",
];

describe("docker-compose.yml", () => {
  it("passes each documented setting to a service, except those with a reason", () => {
    const passed = new Set(["api", "worker", "cli"].flatMap(settingsOf));
    const documented = Object.values(SETTING_GROUPS).flatMap((group) => Object.keys(group));
    expect(documented.filter((name) => !passed.has(name)).toSorted()).toEqual(Object.keys(NOT_PASSED).toSorted());
  });

  it("gives commands what it gives workers, such as the witnesses that `verify` checks", () => {
    const left = new Set(settingsOf("cli"));
    expect(
      settingsOf("worker")
        .filter((name) => !left.has(name))
        .toSorted(),
    ).toEqual(NOT_FOR_COMMANDS.toSorted());
  });

  it.each(Object.keys(services))("gives %s the files of its secrets, which deploy/secrets.sh makes", (service) => {
    const { environment = {}, secrets: mounted = [] } = services[service] ?? {};
    const files = Object.values(environment).flatMap((value) => /^\/run\/secrets\/(\w+)$/.exec(value)?.[1] ?? []);
    expect(mounted).toEqual(expect.arrayContaining(files.filter((name) => name !== "houses")));
    const made = read("deploy/secrets.sh");
    for (const name of mounted) {
      expect(secrets).toHaveProperty(name);
      expect(made).toMatch(new RegExp(String.raw`\b${name}\b`));
    }
  });

  it("runs our programs below an init, without which Ctrl-C does not end a command", () => {
    const ours = Object.entries(services).filter(([, { image }]) => image.startsWith("roundhouse:"));
    expect(ours.map(([name, { init }]) => [name, init])).toEqual(
      ["migrate", "demo-house", "api", "worker", "cli"].map((name) => [name, true]),
    );
  });

  it("publishes HTTPS on IPv4 alone, where Docker passes on the addresses of clients", () => {
    expect(services["tls"]?.ports).toEqual([
      "${HTTPS_ADDRESS:-0.0.0.0:443}:3443",
      "${REDIRECT_ADDRESS:-0.0.0.0:80}:3080",
    ]);
  });

  it("lets no client write its own address: every frontend that forwards deletes X-Forwarded-For first, and all bound connections", () => {
    expect(services["proxy"]?.environment["HTTP_ADDRESS"]).toBe("${HTTP_ADDRESS:-127.0.0.1:3000}");
    const frontends = read("deploy/haproxy.cfg")
      .split(/^frontend /m)
      .slice(1);
    for (const frontend of frontends) expect(frontend).toContain("tcp-request connection reject if { sc0_conn_cur gt");
    const forwarding = frontends.filter((frontend) => frontend.includes("default_backend"));
    expect(forwarding.map((frontend) => frontend.split("\n")[0])).toEqual(["callers", "secure"]);
    for (const frontend of forwarding) {
      expect(frontend).toMatch(/http-request del-header X-Forwarded-For unless is_in_front\b[^]*option forwardfor/);
    }
  });

  it("names the version of package.json, as the Dockerfile does", () => {
    expect(compose).toContain(`roundhouse:\${ROUNDHOUSE_VERSION:-${VERSION}}`);
    expect(read("Dockerfile")).toContain(`ARG VERSION=${VERSION}`);
  });
});
