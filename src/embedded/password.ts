import { randomBytes } from "node:crypto";
import { chmod, readFile, rename, writeFile } from "node:fs/promises";
import { codeOf } from "../errors.ts";

/**
 * The password kept in `file`, made of 24 random bytes at the first call; `isNew` says that it was made just now.
 * Only we can read the file.
 */
export async function keepPassword(file: string): Promise<{ password: string; isNew: boolean }> {
  const kept = await readFile(file, "utf8").catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return "";
    throw new Error(`${file} cannot be read: start roundhouse as the user who owns it`, { cause: error });
  });
  if (kept.trim() !== "") {
    await chmod(file, 0o600);
    return { password: kept.trim(), isNew: false };
  }
  const password = randomBytes(24).toString("hex");
  await writeFile(`${file}.new`, `${password}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
  return { password, isNew: true };
}
