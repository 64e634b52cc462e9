import { userInfo } from "node:os";

/** The operator recorded with a pause: the user of this machine. */
export function operator(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? "unknown"}`; // a container's user may have no name
  }
}
