import { resolve } from "node:path";
import { Command } from "commander";
import { unlessAborted } from "../../abort.ts";
import { type AuditFailure, verifyAudit } from "../../audit/verify.ts";
import { checkBackup } from "../../backup/read.ts";
import { restoreRows, type RestoreProgress } from "../../backup/restore.ts";
import { createDatabase, findInTheWay, listMigrations } from "../../backup/store.ts";
import { loadSettings, type Settings } from "../../config/environment.ts";
import type { Sql } from "../../db/client.ts";
import { withConnections } from "../../db/with-connections.ts";
import { migrate, migrationNames } from "../../db/migrate.ts";
import { requireSession } from "../../db/connections/pooler.ts";
import { claimDataDir } from "../../embedded/lock.ts";
import { startServers } from "../../embedded/servers.ts";
import { UsageError } from "../../errors.ts";
import { verify, type Verification } from "../../verify/verify.ts";
import { checkLedger } from "../../ledger/check.ts";
import { withoutPassword } from "../../log.ts";
import { VERSION } from "../../version.ts";
import { examples, readableFile } from "../arguments.ts";
import { audited } from "../audited.ts";
import { listenForInterruption } from "../interruption.ts";
import { print, printJson, say } from "../output.ts";
import { progressBar, type Progress } from "../progress.ts";
import { reaching } from "../session.ts";

/** How many addresses after the last one that was paid to most wallets search (BIP 44). */
const USUAL_WALLET_GAP = 20;

interface Given {
  from: string;
  into?: string;
  verify: boolean;
  json: boolean;
}

/** `roundhouse restore`: a database from a backup, verified to its last hash. Exit code 1 if a check fails. */
export function restoreCommand(): Command {
  return new Command("restore")
    .description("restore a backup into an empty database, migrate it to the newest schema and verify all of it")
    .requiredOption("--from <file>", "a file written by `roundhouse backup`", readableFile)
    .option(
      "--into <url>",
      "the empty database, or the name of one on the server of DATABASE_URL, created if it does not exist (default: DATABASE_URL, else a private one in DATA_DIR, as `up` uses)",
    )
    .option("--no-verify", "leave out the checks that `verify` and `ledger check` make")
    .option("--json", "print one JSON object", false)
    .addHelpText(
      "after",
      `${examples("restore --from today.sql.gz", "restore --from today.sql.gz --into postgres://roundhouse@db/fresh", "restore --from today.sql.gz --into fresh")}

Nothing is written until the whole file is found to be undamaged, and then all of it or nothing: if a restore is
stopped or killed before all rows are written, run it again. If it is stopped or killed later, all rows are there: run
\`roundhouse migrate\`, \`verify\` and \`ledger check\` on that database.`,
    )
    .action(async (given: Given) => {
      const settings = loadSettings();
      const interruption = listenForInterruption("the restore was stopped; nothing of it was kept, run it again");
      const progress = progressBar();
      try {
        await withTarget(given, settings, (target) => restore(target, given, interruption.signal, progress));
      } finally {
        progress.end();
        interruption.end();
      }
    });
}

/** The database that gets the rows, and how to get an empty one if it is not empty. */
interface Target {
  url: string;
  advice: string;
}

/** Finds the target, and starts the private servers if none is given. */
async function withTarget(given: Given, settings: Settings, work: (target: Target) => Promise<void>): Promise<void> {
  const configured = settings.DATABASE_DIRECT_URL ?? settings.DATABASE_URL;
  const url = given.into === undefined ? configured : await targetOf(given.into, configured);
  if (url !== undefined) {
    return work({ url, advice: "make a new one (`create database …`) and restore into that" });
  }
  const release = await claimDataDir(settings.DATA_DIR);
  try {
    const servers = await startServers({
      dataDir: settings.DATA_DIR,
      databaseUrl: undefined,
      redisUrl: undefined,
      say,
    });
    try {
      const advice = `set DATA_DIR to an empty folder, copy auth-secret and log/ of ${settings.DATA_DIR} into it, and restore again`;
      await work({ url: servers.databaseUrl, advice });
    } finally {
      await servers.stop();
    }
  } finally {
    await release();
  }
}

/**
 * The URL of `--into`. A name means a database on the configured server; it is created if it does not exist.
 * @throws UsageError if it is neither a URL nor a name, or no server is configured.
 */
async function targetOf(into: string, configured: string | undefined): Promise<string> {
  if (URL.canParse(into)) return into;
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(into)) {
    throw new UsageError(`expected a URL or the name of a database for --into, found ${JSON.stringify(into)}`);
  }
  if (configured === undefined) throw new UsageError("a name for --into needs DATABASE_URL, which names the server");
  const isMade = await withConnections(configured, { name: "restore", max: 1 }, (sql) =>
    reaching(configured, () => createDatabase(sql, into)),
  );
  if (isMade) say(`made the database ${into}`);
  return Object.assign(new URL(configured), { pathname: into }).href;
}

async function restore(target: Target, { from, verify: checks, json }: Given, signal: AbortSignal, progress: Progress) {
  const { url } = target;
  const file = resolve(from);
  const { header, end } = await checkBackup(file, (done, of) => {
    signal.throwIfAborted();
    progress.show("reading", done, of);
  });
  const ours = migrationNames();
  if (header.migrations.some((name, at) => ours[at] !== name)) {
    throw new UsageError(
      `${file} is of version ${header.version}, whose schema this version (${VERSION}) does not know; restore it with that one`,
    );
  }
  await reaching(url, () => requireSession(url));
  await withConnections(url, { name: "restore", max: 2, use: "bulk" }, async (sql) => {
    await reaching(url, () => refuseUsed(sql, target, header.migrations));
    await migrate(url, say, { upTo: header.migrations });
    const show: RestoreProgress = (...state) => progress.show(...state);
    const { walletGap, leftOut } = await restoreRows(sql, file, { header, rows: end.rows, signal, progress: show });
    await migrate(url, say);
    const facts = { file, snapshot_at: header.snapshot_at, rows: end.rows, wallet_gap: walletGap, left_out: leftOut };
    await audited(
      sql,
      () => Promise.resolve(),
      () => ({ action: "database.restore", target: file, after: facts }),
    );
    const found = checks
      ? await unlessAborted(check(sql, url, header.snapshot_at, progress), signal, stoppedChecks)
      : null;
    progress.end();
    if (leftOut.length > 0) say(`left out, since they are not of this schema: ${leftOut.join(", ")}`);
    if (walletGap > USUAL_WALLET_GAP) {
      say(
        `the next USDT address is ${walletGap} addresses beyond the newest one with a deposit, and most wallets search ${USUAL_WALLET_GAP}: if you accept USDT, raise the wallet's gap limit well above ${walletGap}`,
      );
    }
    const ok = found === null || found.ok;
    await (json ? printJson({ ok, ...facts, verify: found }) : print(sentence(facts, found)));
    if (!ok) process.exitCode = 1;
  });
}

/** @throws UsageError if the database is not empty, or its schema differs from the backup's. */
async function refuseUsed(sql: Sql, { url, advice }: Target, migrations: readonly string[]): Promise<void> {
  const why = await findInTheWay(sql);
  const there = await listMigrations(sql);
  const isOther = there.some((name, at) => migrations[at] !== name);
  if (why === null && !isOther) return;
  throw new UsageError(
    `${withoutPassword(url)} is not empty: ${why ?? "its schema is newer than that of the backup"}; ${advice}`,
  );
}

/** The result of the checks of a restored database. */
interface Found {
  ok: boolean;
  figures: Verification;
  audit: { entries: number; failure: AuditFailure | null };
  ledger: Awaited<ReturnType<typeof checkLedger>>;
}

/** While the checks run; they end with the connections and with the process. */
function stoppedChecks(): Error {
  return new Error(
    "the checks were stopped; all rows are restored: run `roundhouse verify` and `roundhouse ledger check` on this database",
  );
}

/** @param asOf the time of the backup: scores that it lacks may have been due seconds later */
async function check(sql: Sql, databaseUrl: string, asOf: string, progress: Progress): Promise<Found> {
  const show = (...state: Parameters<Progress["show"]>) => progress.show(...state);
  const figures = await verify(sql, { asOf, threads: { databaseUrl }, progress: show });
  const audit = await verifyAudit(sql);
  const ledger = await checkLedger(sql);
  return { ok: figures.ok && audit.failure === null && ledger.ok, figures, audit, ledger };
}

function sentence(facts: { file: string; snapshot_at: string; rows: number }, found: Found | null): string {
  const restored = `restored ${facts.rows} rows, as of ${facts.snapshot_at}, from ${facts.file}`;
  if (found === null) return `${restored}\nnot verified: run \`roundhouse verify\` and \`roundhouse ledger check\``;
  const { rounds, forecasts, scores } = found.figures.checked;
  const counted = `${rounds} rounds, ${forecasts} forecasts, ${scores} scores, ${found.audit.entries} entries of the audit log and ${found.ledger.checked.entries} of the ledger`;
  return found.ok
    ? `${restored}\nverified: ${counted} are as they should be`
    : `${restored}\nsomething is not as it should be; \`roundhouse verify\` and \`roundhouse ledger check\` say what`;
}
