import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { eventually } from "../support/eventually.ts";

/** A stock start may have to unpack its servers. */
const READY_WITHIN_MS = 180_000;
const STOPPED_WITHIN_MS = 30_000;

/** So that the pages of bank transfers exist; the number is the one that standards use as an example. */
const BANK = { BANK_BENEFICIARY: "Roundhouse Ltd", BANK_IBAN: "DE89370400440532013000" };

const ready = z.object({ event: z.literal("ready"), url: z.string(), api_key: z.string(), ops_url: z.string() });

/** A running instance: `npm start` with an empty data folder and an account for bank transfers. */
export interface Instance {
  url: string;
  /** Signs the operator of this machine in, once. */
  opsUrl: string;
  apiKey: string;
  /** A link with this path in a mail that was printed, since nothing sends mails; waits for it at most 20 s. */
  printedLink(path: string): Promise<string>;
  stop(): Promise<void>;
}

/**
 * Starts an instance on free ports and waits until it is ready.
 * @throws Error when it ends or is not ready within three minutes
 */
export async function startInstance(): Promise<Instance> {
  const folder = await mkdtemp(join(tmpdir(), "screens-"));
  const child = spawn("node", ["src/start.js", "up", "--json"], {
    env: { ...process.env, ...BANK, DATA_DIR: folder, PORT: "0", LOG_LEVEL: "error" },
    stdio: ["ignore", "pipe", "pipe"],
  });
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
    await rm(folder, { recursive: true, force: true });
  };
  const late = setTimeout(() => child.kill("SIGKILL"), READY_WITHIN_MS);
  for await (const line of createInterface({ input: child.stdout })) {
    const message = ready.safeParse(JSON.parse(line));
    if (!message.success) continue;
    clearTimeout(late);
    const { url, api_key: apiKey, ops_url: opsUrl } = message.data;
    const printedLink = (path: string) => eventually(() => new RegExp(`http\\S*${path}\\S*`).exec(printed)?.[0]);
    return { url, apiKey, opsUrl, printedLink, stop };
  }
  await stop();
  throw new Error("expected npm start to become ready; it ended, or was not ready within 3 minutes: run it to see why");
}
