import type { Witness } from "../../config/witnesses.ts";
import type { Sql } from "../../db/client.ts";
import { findNewestCheckpoint, listLogs } from "./log-store.ts";
import { cosignedAt } from "../../signed-note.ts";

/** The state of a log. */
export interface LogStatus {
  origin: string | null;
  /** Entries, and those that the newest checkpoint covers. */
  size: number;
  signed_size: number;
  signed_at: string | null;
  /** Names of the configured witnesses that cosigned it. */
  cosigned_by: string[];
}

/** The state of the newest log; without an origin before the first. */
export async function readLogStatus(sql: Sql, witnesses: readonly Witness[]): Promise<LogStatus> {
  const [log] = await listLogs(sql);
  const checkpoint = log === undefined ? null : await findNewestCheckpoint(sql, log.id);
  return {
    origin: log?.origin ?? null,
    size: log?.size ?? 0,
    signed_size: checkpoint?.size ?? 0,
    signed_at: checkpoint?.signedAt ?? null,
    cosigned_by:
      checkpoint === null
        ? []
        : witnesses.flatMap(({ key }) => (cosignedAt(checkpoint.note, key) === null ? [] : [key.name])),
  };
}
