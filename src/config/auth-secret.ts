import { join } from "node:path";
import type { Settings } from "./environment.ts";
import { keepPassword } from "./keep-password.ts";
import { createFolder } from "../create-folder.ts";
import { reasonOf, UsageError } from "../errors.ts";

/**
 * Returns the secret that signs cookies and encrypts two-factor secrets and links in e-mails: AUTH_SECRET, or one
 * stored in the data folder.
 * @throws UsageError if neither is available.
 */
export async function authSecret({ AUTH_SECRET, DATA_DIR }: Settings): Promise<string> {
  if (AUTH_SECRET !== undefined) return AUTH_SECRET;
  try {
    await createFolder(DATA_DIR, 0o711);
    const { password } = await keepPassword(join(DATA_DIR, "auth-secret"));
    return password;
  } catch (error) {
    throw new UsageError(`set AUTH_SECRET: the folder ${DATA_DIR} cannot keep a generated secret: ${reasonOf(error)}`);
  }
}
