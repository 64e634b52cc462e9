import type { Command } from "commander";
import { loadSettings } from "../config.ts";

/** Makes a command. */
type Load = () => Promise<Command>;

/** Every command, by what one uses it for. Each is loaded when it is asked for: all of them together take half a second. */
export const COMMANDS: Record<string, Record<string, Load>> = {
  "Running:": {
    up: async () => (await import("./up.ts")).upCommand(),
    api: async () => (await import("./api.ts")).apiCommand(),
    worker: async () => (await import("./worker.ts")).workerCommand(),
    migrate: async () => (await import("./migrate.ts")).migrateCommand(),
    "demo-house": async () => (await import("./demo-house.ts")).demoHouseCommand(demoSettings),
  },
  "Looking after it:": {
    doctor: async () => (await import("./doctor.ts")).doctorCommand(),
    house: async () => (await import("./house.ts")).houseCommand(),
    table: async () => (await import("./table.ts")).tableCommand(),
    queue: async () => (await import("./queue.ts")).queueCommand(),
    payload: async () => (await import("./payload.ts")).payloadCommand(),
    quarantine: async () => (await import("./quarantine.ts")).quarantineCommand(),
    conflict: async () => (await import("./conflict.ts")).conflictCommand(),
    round: async () => (await import("./round.ts")).roundCommand(),
    gap: async () => (await import("./gap.ts")).gapCommand(),
    notice: async () => (await import("./notice.ts")).noticeCommand(),
    calibrate: async () => (await import("./calibrate.ts")).calibrateCommand(),
    calibration: async () => (await import("./calibration.ts")).calibrationCommand(),
    accuracy: async () => (await import("./accuracy.ts")).accuracyCommand(),
    audit: async () => (await import("./audit.ts")).auditCommand(),
    verify: async () => (await import("./verify.ts")).verifyCommand(),
  },
  "Data:": {
    backup: async () => (await import("./backup.ts")).backupCommand(),
    restore: async () => (await import("./restore.ts")).restoreCommand(),
    import: async () => (await import("./import.ts")).importCommand(),
    export: async () => (await import("./export.ts")).exportCommand(),
    log: async () => (await import("./log.ts")).logCommand(),
    witness: async () => (await import("./log.ts")).witnessCommand(),
  },
  "Operators:": {
    "ops-user": async () => (await import("./ops-user.ts")).opsUserCommand(),
  },
  "Callers:": {
    account: async () => (await import("./account.ts")).accountCommand(),
    key: async () => (await import("./key.ts")).keyCommand(),
    plan: async () => (await import("./plan.ts")).planCommand(),
    ledger: async () => (await import("./ledger.ts")).ledgerCommand(),
  },
};

function demoSettings(): { dataDir: string; host: string } {
  const { DATA_DIR, HOST } = loadSettings();
  return { dataDir: DATA_DIR, host: HOST };
}
