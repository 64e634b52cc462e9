import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { type FinishedBackup, saveBackup } from "../../backup/finished-store.ts";
import { writeBackup } from "../../backup/write.ts";
import { createFolder } from "../../create-folder.ts";
import { codeOf, UsageError } from "../../errors.ts";
import { VERSION } from "../../version.ts";
import { examples } from "../arguments.ts";
import { audited } from "../audited.ts";
import { listenForInterruption } from "../interruption.ts";
import { print, printJson, say, snakeKeys } from "../output.ts";
import { progressBar } from "../progress.ts";
import { withDatabase } from "../session.ts";

/** `roundhouse backup`: the whole database in one file, from which `roundhouse restore` creates it again. */
export function backupCommand(): Command {
  return new Command("backup")
    .description("write a consistent snapshot of the whole database to a file; everything keeps running meanwhile")
    .requiredOption(
      "--to <path>",
      "a new file (.gz), or a folder, which is created if it is missing and in which the file is named by the time",
    )
    .option("--json", "print one JSON object", false)
    .addHelpText(
      "after",
      `${examples("backup --to /var/backups/roundhouse", "backup --to today.sql.gz --json")}

The file holds password hashes, second factors (encrypted with AUTH_SECRET), addresses and mails that are not sent yet:
it may be read by its owner alone, and belongs on another machine, encrypted. Not in it, so keep them too: AUTH_SECRET
(if it is not set, DATA_DIR/auth-secret), the key of the public log (LOG_DIR/key.pem, by default DATA_DIR/log/key.pem),
houses.yaml and its variables. Redis is not backed up: nothing in it is needed again.`,
    )
    .action(async ({ to, json }: { to: string; json: boolean }) => {
      const file = await newFile(to);
      await withDatabase(
        async ({ sql }) => {
          const interruption = listenForInterruption("the backup was stopped; nothing was left behind");
          const progress = progressBar();
          try {
            const made = await writeBackup(sql, file, {
              version: VERSION,
              signal: interruption.signal,
              progress: (...state) => progress.show(...state),
            });
            await audited(
              sql,
              (tx) => saveBackup(tx, made),
              () => ({ action: "database.backup", target: made.file, after: { ...made } }),
            );
            progress.end();
            if (made.leftOut.length > 0) {
              say(`left out, since they are not of this schema: ${made.leftOut.join(", ")}`);
            }
            await (json ? printJson(snakeKeys(made)) : print(sentence(made)));
          } finally {
            progress.end();
            interruption.end();
          }
        },
        { patient: true },
      );
    });
}

/** The path of a new file; creates the folder if one is given. @throws UsageError if the file exists. */
async function newFile(to: string): Promise<string> {
  const path = resolve(to);
  const found = await stat(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  });
  const isFolder = found?.isDirectory() ?? (to.endsWith("/") || !path.endsWith(".gz"));
  if (isFolder) {
    await createFolder(path);
    const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "");
    return join(path, `roundhouse-${time}.sql.gz`);
  }
  if (found !== null) throw new UsageError(`${path} is there already; give a new file, or a folder`);
  return path;
}

function sentence({ file, snapshotAt, bytes, sha256, rows }: FinishedBackup): string {
  return [
    file,
    `  as of    ${snapshotAt}`,
    `  rows     ${rows}`,
    `  bytes    ${bytes}`,
    `  sha256   ${sha256}`,
    `restore it with \`roundhouse restore --from ${file}\` into an empty database`,
  ].join("\n");
}
