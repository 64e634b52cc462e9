import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { connect } from "../../src/db/client.ts";
import { startTestServers } from "./servers.ts";

const URLS = { databaseUrl: undefined, redisUrl: undefined };

/** Whether the engine refuses to pull an image, as without network, or never finishes. */
let pull: "refuses" | "hangs" = "refuses";
let engine: Server;
let folder: string;

/** The part of an engine's API that comes before a container: it is there, and has no images. */
beforeAll(async () => {
  engine = createServer((request, response) => {
    const path = new URL(request.url ?? "", "http://engine").pathname;
    const send = (status: number, body: object) =>
      response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    if (path.endsWith("/info")) send(200, { ServerVersion: "0", OperatingSystem: "Linux", OSType: "linux" });
    else if (path.endsWith("/networks/bridge")) send(200, { IPAM: { Config: [{ Gateway: "127.0.0.1" }] } });
    else if (path.endsWith("/images/create")) {
      if (pull === "refuses") send(500, { message: "no registry can be reached" });
    } else send(404, { message: "no such image" });
  });
  folder = await mkdtemp(join(tmpdir(), "roundhouse-engine-"));
  const socket = join(folder, "engine.sock");
  await once(engine.listen(socket), "listening");
  vi.stubEnv("DOCKER_HOST", `unix://${socket}`);
  vi.stubEnv("TESTCONTAINERS_RYUK_DISABLED", "true");
});
afterAll(async () => {
  vi.unstubAllEnvs();
  engine.closeAllConnections();
  engine.close();
  await rm(folder, { recursive: true });
});

describe("test servers when an engine without an image responds", () => {
  it.each(["refuses", "hangs"] as const)(
    "are the embedded ones, with a line that states why, if the pull %s",
    async (how) => {
      pull = how;
      const lines: string[] = [];
      const log = vi.spyOn(console, "error").mockImplementation((line: string) => void lines.push(line));
      onTestFinished(() => log.mockRestore());

      const containersWithinMs = { refuses: 120_000, hangs: 2_000 }[how];
      const servers = await startTestServers(undefined, URLS, { containersWithinMs });
      onTestFinished(() => servers.stop());

      expect(servers.kind).toBe("embedded");
      const reason = { refuses: "no registry can be reached", hangs: "did not respond within 2000 ms" }[how];
      expect(lines.filter((line) => line.includes("using the embedded servers"))).toEqual([
        expect.stringContaining(reason),
      ]);
      const sql = connect(servers.databaseUrl, { name: "test", max: 1 });
      onTestFinished(() => sql.end());
      expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
    },
    120_000,
  );

  it("are refused if containers are forced", async () => {
    pull = "refuses";
    await expect(startTestServers("containers", URLS)).rejects.toThrow("no registry can be reached");
  });

  it("are refused under an unknown name", async () => {
    await expect(startTestServers("docker", URLS)).rejects.toThrow(
      'TEST_SERVERS is "docker": expected containers, embedded or urls',
    );
  });
});
