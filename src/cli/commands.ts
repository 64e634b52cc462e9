import type { Command } from "commander";
import { loadSettings } from "../config/environment.ts";

/** Makes a command. */
type Load = () => Promise<Command>;

/** Every command, grouped by purpose. Each is loaded on first use: loading all takes half a second. */
export const COMMANDS: Record<string, Record<string, Load>> = {
  "Running:": {
    up: async () => (await import("./run/up.ts")).upCommand(),
    api: async () => (await import("./run/api.ts")).apiCommand(),
    worker: async () => (await import("./run/worker.ts")).workerCommand(),
    migrate: async () => (await import("./run/migrate.ts")).migrateCommand(),
    "demo-house": async () => (await import("./run/demo-house.ts")).demoHouseCommand(demoSettings),
  },
  "Maintenance:": {
    doctor: async () => (await import("./doctor/doctor.ts")).doctorCommand(),
    house: async () => (await import("./houses/house.ts")).houseCommand(),
    table: async () => (await import("./houses/table.ts")).tableCommand(),
    queue: async () => (await import("./houses/queue.ts")).queueCommand(),
    payload: async () => (await import("./houses/payload.ts")).payloadCommand(),
    quarantine: async () => (await import("./houses/quarantine.ts")).quarantineCommand(),
    conflict: async () => (await import("./houses/conflict.ts")).conflictCommand(),
    round: async () => (await import("./houses/round.ts")).roundCommand(),
    gap: async () => (await import("./houses/gap.ts")).gapCommand(),
    notice: async () => (await import("./houses/notice.ts")).noticeCommand(),
    calibrate: async () => (await import("./data/calibrate.ts")).calibrateCommand(),
    calibration: async () => (await import("./data/calibration.ts")).calibrationCommand(),
    accuracy: async () => (await import("./data/accuracy.ts")).accuracyCommand(),
    audit: async () => (await import("./data/audit.ts")).auditCommand(),
    verify: async () => (await import("./data/verify.ts")).verifyCommand(),
  },
  "Data:": {
    backup: async () => (await import("./run/backup.ts")).backupCommand(),
    restore: async () => (await import("./run/restore.ts")).restoreCommand(),
    import: async () => (await import("./import/import.ts")).importCommand(),
    export: async () => (await import("./data/export.ts")).exportCommand(),
    log: async () => (await import("./data/log.ts")).logCommand(),
    witness: async () => (await import("./data/log.ts")).witnessCommand(),
  },
  "Staff:": {
    "ops-user": async () => (await import("./accounts/ops-user.ts")).opsUserCommand(),
  },
  "Callers:": {
    account: async () => (await import("./accounts/account.ts")).accountCommand(),
    key: async () => (await import("./accounts/key.ts")).keyCommand(),
    plan: async () => (await import("./accounts/plan.ts")).planCommand(),
    ledger: async () => (await import("./accounts/ledger.ts")).ledgerCommand(),
  },
};

function demoSettings(): { dataDir: string; host: string } {
  const { DATA_DIR, HOST } = loadSettings();
  return { dataDir: DATA_DIR, host: HOST };
}
