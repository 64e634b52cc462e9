import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { stopHandler } from "../../src/cli/stop-signal.ts";
import { codeOf } from "../../src/errors.ts";
import { verifierKeyText } from "../../src/signed-note.ts";
import { eventually } from "../support/eventually.ts";
import { makeFolder, startRoundhouse } from "./world.ts";

const LOG = verifierKeyText({ name: "example.com/log", type: "log", publicKey: Buffer.alloc(32, 7) });

const MODULE = join(import.meta.dirname, "../../src/cli/stop-signal.ts");

it("stops at the first signal, ignores others for a second, and is cut short by a later one", () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const calls: string[] = [];
  const signal = stopHandler(
    () => calls.push("stop"),
    () => calls.push("cut short"),
  );
  signal();
  signal();
  vi.advanceTimersByTime(999);
  signal();
  expect(calls).toEqual(["stop"]);
  vi.advanceTimersByTime(1);
  signal();
  expect(calls).toEqual(["stop", "cut short"]);
});

it("ignores a signal that arrives again after its listeners were to be removed", async () => {
  const script = `
    import { onStopSignal } from ${JSON.stringify(MODULE)};
    const awake = setTimeout(() => {}, 20_000);
    const end = onStopSignal(() => {
      clearTimeout(awake);
      end();
      process.kill(process.pid, "SIGINT");
    });
    process.kill(process.pid, "SIGINT");`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  expect(await once(child, "close")).toEqual([0, null]);
});

it.each([
  ["demo-house", ["demo-house", "--port", "0"]],
  ["witness", ["witness", "--port", "0", "--name", "witness.example.com", "--log", LOG, "--folder", "witness"]],
])("%s ends well on a Ctrl-C that arrives twice, from the terminal and from npm", async (_, args) => {
  const cwd = await makeFolder();
  const started = startRoundhouse(args, { cwd, env: { DATA_DIR: cwd } });
  const port = await eventually(() => {
    const { stdout, stderr } = started.output;
    return /http:\/\/127\.0\.0\.1:(\d+)/.exec(stdout + stderr)?.[1];
  });
  const request = await beginRequest(Number(port));
  started.kill("SIGINT");
  await eventually(() => isRefused(Number(port)));
  started.kill("SIGINT");
  request.end("Connection: close\r\n\r\n");
  expect(await started.ended).toMatchObject({ code: 0 });
});

/** Sends a request without its end, which keeps the server from closing. */
async function beginRequest(port: number): Promise<Socket> {
  const socket = await open(port);
  // the response to the first request shows that the server has read the beginning of the second one
  socket.write("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\nGET /b HTTP/1.1\r\nHost: localhost\r\n");
  await once(socket, "data");
  return socket;
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined); // a process that is killed resets it
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

function isRefused(port: number): Promise<boolean> {
  return open(port).then(
    (socket) => {
      socket.destroy(); // an open connection would keep the server from closing
      return false;
    },
    (error: unknown) => codeOf(error) === "ECONNREFUSED",
  );
}
