/**
 * `npm run upgrade`: a database of an older build with many rounds, brought to the present schema while the older API
 * answers; then present workers and a present API on it, beside the older one, and `verify` over all of it.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { print, printJson, printTable, say } from "../../src/cli/output.ts";
import { UsageError } from "../../src/errors.ts";
import { startSimulatedServers } from "../simulate/servers.ts";
import { playUpgrade, type Upgraded } from "./run.ts";

interface Given {
  rounds: number;
  from: string;
  json: boolean;
}

const program = new Command("npm run upgrade --")
  .description("bring a database with many rounds from an older schema to the newest while an older API still reads")
  .option("--rounds <n>", "rounds that the older build imports", wholeNumber, 100_000)
  .option("--from <build>", "first (the first schema that still stands), previous, or a commit", "first")
  .option("--json", "print one JSON object", false)
  .exitOverride((error) => {
    process.exit(error.exitCode === 0 ? 0 : 2);
  })
  .action(async ({ rounds, from, json }: Given) => {
    const folder = await mkdtemp(join(tmpdir(), "roundhouse-upgrade-"));
    await chmod(folder, 0o711); // PostgreSQL may run as another user
    const servers = await startSimulatedServers(join(folder, "servers"), join(homedir(), ".cache", "roundhouse"), say);
    let upgraded: Upgraded;
    try {
      const { databaseUrl, redisUrl } = servers;
      upgraded = await playUpgrade({ rounds, from, databaseUrl, redisUrl, folder, say });
    } finally {
      await servers.stop();
    }
    if (json) await printJson({ ok: upgraded.problems.length === 0, ...upgraded });
    else await tell(upgraded);
    if (upgraded.problems.length > 0) {
      say(`the logs of every process are in ${folder}`);
      process.exitCode = 1;
    } else await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  say(error.message);
  process.exitCode = 1;
}

async function tell({ older, newer, rounds, migrations, seconds, read, problems }: Upgraded): Promise<void> {
  await printTable(
    ["migration", "s", "readers kept out of", "writers alone kept out of"],
    migrations.map((one) => [one.name, one.seconds.toFixed(2), lockedOf(one, "read"), lockedOf(one, "write")]),
  );
  const { answers, longestSilence } = read;
  await print(
    `\n${rounds} rounds of ${older.commit.slice(0, 7)}, ${older.migrations} to ${newer.migrations} migrations in ${seconds.toFixed(1)} s`,
  );
  await print(
    `the older API answered ${answers[200]} × 200, ${answers[304]} × 304 and ${answers[503]} × 503; longest silence ${longestSilence.toFixed(2)} s`,
  );
  await print(problems.length === 0 ? "every answer was true, and verify is green" : problems.slice(0, 20).join("\n"));
}

function lockedOf({ locked }: Upgraded["migrations"][number], mode: "read" | "write"): string {
  return locked
    .filter((one) => one.mode === mode)
    .map(({ table, seconds }) => `${table} ${seconds.toFixed(2)} s`)
    .join(", ");
}

function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError(`expected a whole number above 0, got ${JSON.stringify(text)}`);
}
