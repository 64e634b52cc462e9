import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { rm, writeFile } from "node:fs/promises";
import { createServer, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { freePort } from "../../src/embedded/ports.ts";
import { findPrograms } from "../../src/embedded/process.ts";
import { makeFolder } from "../cli/world.ts";
import { eventually } from "../support/eventually.ts";
import { startProxy } from "./haproxy.ts";
import { startNameServer } from "./name-server.ts";

const FORGED = "198.51.100.7";
const CLIENT = "127.0.0.2";
const IN_FRONT = "127.0.0.3";

/** Starts the proxy in front of a server that returns the X-Forwarded-For it receives. */
async function startEcho(env: Record<string, string>): Promise<string> {
  const names = await startNameServer("api");
  names.addresses = ["127.0.0.1"];
  const server = createServer((request, response) => response.end(request.headers["x-forwarded-for"]));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    names.close();
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const proxy = await startProxy({ RESOLVER: `127.0.0.1:${names.port}`, API_PORT: String(address.port), ...env });
  await eventually(async () => (await fetch(proxy.url)).status === 200);
  return proxy.url;
}

/** Returns the X-Forwarded-For that reaches the API when a client at an address sends one of its own. */
async function forwarded(url: string, from: string): Promise<string> {
  const send = url.startsWith("https:") ? requestHttps : requestHttp;
  const request = send(url, {
    localAddress: from,
    agent: false,
    rejectUnauthorized: false,
    headers: { "X-Forwarded-For": [FORGED, "198.51.100.8"] },
  }).end();
  const [response] = (await once(request, "response")) as [AsyncIterable<Buffer>];
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part);
  return Buffer.concat(parts).toString();
}

/** Makes a folder with a certificate for itself. */
async function makeCertificates(): Promise<string> {
  const folder = await makeFolder();
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const command = (await findPrograms(["openssl"])).get("openssl");
  if (command === undefined) throw new Error("expected openssl, found none in the PATH; install it");
  const make = (args: string[]) =>
    execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const key = join(folder, "key");
  make(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key]);
  const certificate = make(["req", "-new", "-x509", "-key", key, "-subj", "/CN=localhost", "-days", "1"]);
  const pem = certificate + make(["pkey", "-in", key]);
  await rm(key);
  await writeFile(join(folder, "localhost.pem"), pem);
  return folder;
}

it.each([
  ["published to others", "0.0.0.0:3000"],
  ["published on all addresses", "3000"],
])(
  "deletes the X-Forwarded-For of a client if the port is %s, except from the proxy in front",
  async (_, published) => {
    const url = await startEcho({ HTTP_ADDRESS: published, PROXY_IN_FRONT: IN_FRONT });
    expect(await forwarded(url, CLIENT)).toBe(CLIENT);
    expect(await forwarded(url, IN_FRONT)).toContain(FORGED);
  },
);

it("believes several proxies in front, by address or network", async () => {
  const url = await startEcho({ HTTP_ADDRESS: "0.0.0.0:3000", PROXY_IN_FRONT: `127.0.1.0/24 ${IN_FRONT}` });
  expect(await forwarded(url, CLIENT)).toBe(CLIENT);
  expect(await forwarded(url, IN_FRONT)).toContain(FORGED);
  expect(await forwarded(url, "127.0.1.9")).toContain(FORGED);
});

it("keeps X-Forwarded-For if the port is published to this machine alone, where a proxy ends TLS", async () => {
  const url = await startEcho({ HTTP_ADDRESS: "127.0.0.1:3000" });
  expect(await forwarded(url, CLIENT)).toContain(FORGED);
});

it("deletes the X-Forwarded-For of a client where it ends TLS itself", async () => {
  const [port, redirect] = [await freePort(), await freePort()];
  await startEcho({
    HTTP_ADDRESS: "127.0.0.1:3000",
    TLS_CERTIFICATES: await makeCertificates(),
    LISTEN_TLS: `127.0.0.1:${port}`,
    LISTEN_REDIRECT: `127.0.0.1:${redirect}`,
    PROXY_IN_FRONT: IN_FRONT,
  });
  expect(await forwarded(`https://127.0.0.1:${port}`, CLIENT)).toBe(CLIENT);
  expect(await forwarded(`https://127.0.0.1:${port}`, IN_FRONT)).toContain(FORGED);
});

/** Opens connections that send nothing, from an address. They end with the test. */
async function openSilent(url: string, from: string, count: number): Promise<Socket[]> {
  const { hostname, port } = new URL(url);
  const sockets = Array.from({ length: count }, () =>
    connect({ host: hostname, port: Number(port), localAddress: from }),
  );
  for (const socket of sockets) socket.on("error", () => undefined); // refused
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  await Promise.allSettled(sockets.map((socket) => once(socket, "connect")));
  return sockets;
}

it("refuses the connections of an address beyond its limit, on all ports together, and serves others", async () => {
  const redirect = await freePort();
  const url = await startEcho({
    HTTP_ADDRESS: "0.0.0.0:3000",
    PROXY_IN_FRONT: IN_FRONT,
    CONNECTIONS_PER_ADDRESS: "5",
    TLS_CERTIFICATES: await makeCertificates(),
    LISTEN_TLS: `127.0.0.1:${await freePort()}`,
    LISTEN_REDIRECT: `127.0.0.1:${redirect}`,
  });
  await openSilent(url, CLIENT, 3);
  await openSilent(`http://127.0.0.1:${redirect}`, CLIENT, 1);
  expect(await forwarded(url, CLIENT)).toBe(CLIENT);
  await openSilent(url, CLIENT, 4); // more than there is room for: the request before may still be open
  await expect(forwarded(url, CLIENT)).rejects.toThrow(/hang up|ECONNRESET/);
  expect(await forwarded(url, "127.0.0.4")).toBe("127.0.0.4");
  await openSilent(url, IN_FRONT, 10);
  expect(await forwarded(url, IN_FRONT)).toContain(FORGED);
});

it("limits no connections of a port that is published to this machine alone", async () => {
  const url = await startEcho({ HTTP_ADDRESS: "127.0.0.1:3000", CONNECTIONS_PER_ADDRESS: "5" });
  await openSilent(url, CLIENT, 10);
  expect(await forwarded(url, CLIENT)).toContain(FORGED);
});
