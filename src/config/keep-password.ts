import { randomBytes } from "node:crypto";
import { chmod, link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { codeOf } from "../errors.ts";

/**
 * Returns the password stored in `file`, made from 24 random bytes at the first call; `isNew` is true if this call made
 * it. Concurrent processes with one folder get the same password. Only this user can read the file.
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
  const draft = `${file}.${randomBytes(4).toString("hex")}`;
  await writeFile(draft, `${password}\n`, { mode: 0o600 });
  try {
    await link(draft, file); // never over one that another process has made in this moment
  } catch (error) {
    if (codeOf(error) === "EEXIST") {
      const other = (await readFile(file, "utf8")).trim();
      if (other !== "") return { password: other, isNew: false };
    }
    await rename(draft, file); // an empty one, or a file system without links
  } finally {
    await rm(draft, { force: true });
  }
  return { password, isNew: true };
}
