import { createServer } from "node:http";
import { resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { logFolderOf } from "../../config/environment.ts";
import { reasonOf } from "../../errors.ts";
import { declareLog } from "../../record/log/declare.ts";
import { readLogStatus } from "../../record/log/status.ts";
import { makeKey } from "../../record/log/log-folder.ts";
import { listLogs } from "../../record/log/log-store.ts";
import { parseVerifierKey, signerOf, type VerifierKey, verifierKeyText } from "../../signed-note.ts";
import { keyOf } from "../../record/log/verify-log.ts";
import { openWitness } from "../../record/log/witness.ts";
import { examples, someText, wholeNumber } from "../arguments.ts";
import { audited } from "../audited.ts";
import { operator } from "../operator.ts";
import { print, printJson, say } from "../output.ts";
import { withDatabase } from "../session.ts";
import { onStopSignal } from "../stop-signal.ts";

/** `roundhouse log …`: the transparency log of this instance. */
export function logCommand(): Command {
  const command = new Command("log")
    .description("the public transparency log of this instance")
    .addHelpText("after", examples("log status", "log key"));
  command
    .command("key")
    .description("the public key of the log, for witnesses and auditors")
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples("log key", "log key --json"))
    .action(({ json }: { json: boolean }) =>
      withDatabase(async ({ sql }) => {
        const [log] = await listLogs(sql);
        if (log === undefined) throw new Error("expected a log, found none: the first worker begins it");
        const key = verifierKeyText(keyOf(log));
        await (json ? printJson({ key }) : print(key));
      }),
    );
  command
    .command("status")
    .description("size, newest checkpoint and its cosignatures")
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples("log status", "log status --json"))
    .action(({ json }: { json: boolean }) =>
      withDatabase(async ({ sql, settings }) => {
        const status = await readLogStatus(sql, settings.LOG_WITNESSES);
        if (json) return printJson(status);
        for (const [name, value] of Object.entries(status))
          await print(`${name.padEnd(14)} ${String(value ?? "none")}`);
      }),
    );
  command
    .command("declare")
    .description("begin a new log after the database was restored from a backup; this is public and audited")
    .requiredOption("--reason <text>", "the reason, which is public", someText)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples('log declare --reason "restored from the backup of 2026-11-22"'))
    .action(({ reason, json }: { reason: string; json: boolean }) =>
      withDatabase(async ({ sql, settings }) => {
        const folder = resolve(logFolderOf(settings));
        const origin = await audited(
          sql,
          (tx) => declareLog(tx, { folder, publicUrl: settings.PUBLIC_URL, by: operator(), reason }),
          (made) => ({ action: "log.declare", target: `log ${made}`, reason }),
        );
        if (json) return printJson({ origin });
        say(`the log ${origin} begins with the next checkpoint, within a minute`);
      }),
    );
  return command;
}

/** `roundhouse witness`: cosigns the checkpoints of other operators' logs. */
export function witnessCommand(): Command {
  return new Command("witness")
    .description("run a witness: it stores the newest checkpoint of each log and cosigns only logs that extend it")
    .requiredOption("--name <name>", "the witness's name, such as witness.example.com")
    .requiredOption("--log <key...>", "verifier key of each log, as `roundhouse log key` prints it", verifierKeys)
    .requiredOption("--folder <path>", "where its key and its file are kept")
    .option("--port <number>", "the port to listen on; 0 takes any free one", wholeNumber(0, 65_535), 3003)
    .option("--host <address>", "the address to listen on", "127.0.0.1")
    .addHelpText(
      "after",
      examples("witness --name witness.example.com --folder witness --log example.com/log/0a1b2c3d+…"),
    )
    .action(runWitness);
}

function verifierKeys(text: string, before: VerifierKey[] = []): VerifierKey[] {
  try {
    return [...before, parseVerifierKey(text)];
  } catch (error) {
    throw new InvalidArgumentError(`${reasonOf(error)}.`);
  }
}

const BODY_BYTES_MAX = 64 << 10;

async function runWitness(given: { name: string; log: VerifierKey[]; folder: string; port: number; host: string }) {
  const key = signerOf(given.name, "witness", await makeKey(given.folder));
  const addCheckpoint = await openWitness(given.folder, { key, logs: given.log });
  const server = createServer((request, response) => {
    const send = (status: number, type: string, text: string) => {
      response.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(text) });
      response.end(text);
    };
    if (request.method !== "POST" || request.url !== "/add-checkpoint")
      return send(404, "text/plain", "expected POST /add-checkpoint\n");
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) request.destroy();
      else chunks.push(chunk);
    });
    request.on("end", () => {
      addCheckpoint(Buffer.concat(chunks).toString("utf8")).then(
        ({ status, type, text }) => send(status, type, text),
        (error: unknown) => {
          say(`a checkpoint could not be kept: ${String(error)}`);
          send(500, "text/plain", "the witness cannot keep its file\n");
        },
      );
    });
  });
  server.headersTimeout = 10_000;
  server.requestTimeout = 10_000;
  await new Promise<void>((listening, failed) => {
    server.once("error", failed).listen(given.port, given.host, listening);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : given.port;
  await print(verifierKeyText(key));
  say(`listening on http://${given.host}:${port}`);
  await new Promise<void>((stopped) => void onStopSignal(() => server.close(() => stopped())));
}
