import type { Settings } from "../../config/environment.ts";
import type { Part } from "../../db/roles/role-grants.ts";
import { withRoleOf } from "../../db/roles/take-role.ts";
import type { Log } from "../../log.ts";

/** How a part of the program connects. */
export interface PartUrls {
  url: string;
  /** The URL that bypasses a transaction pooler. */
  directUrl: string;
  /** Whether a transaction pooler is in front of `url`. */
  pooled: boolean;
}

/**
 * The URLs of one part of the program, whose connections take the part's role. If they cannot, a line is logged and they
 * keep the rights of the login user. A transaction pooler does not pass the role on: behind one, the rights are those of the
 * user of DATABASE_URL.
 * @throws the driver's error if the database cannot be reached.
 */
export async function urlsOf(part: Part, databaseUrl: string, settings: Settings, log: Log): Promise<PartUrls> {
  const pooled = settings.DATABASE_DIRECT_URL !== undefined;
  const taken = await withRoleOf(part, settings.DATABASE_DIRECT_URL ?? databaseUrl);
  if (taken.why !== null) log.warn(`${part}: ${taken.why}`);
  else if (pooled && taken.isOwner) {
    log.warn(
      `${part}: behind a pooler no role is taken, and the user of DATABASE_URL may do everything; log in as a user that is a member of the part's role`,
    );
  }
  return { url: pooled ? databaseUrl : taken.url, directUrl: taken.url, pooled };
}
