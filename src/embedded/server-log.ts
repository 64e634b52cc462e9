import { copyFile, open } from "node:fs/promises";

/** The limit of a server's log file; with its predecessor it never fills a disk. */
const MAX_BYTES = 10 * 1024 * 1024;
/** The part of it for a message. */
const TAIL_BYTES = 2000;
const CHECK_EVERY_MS = 60_000;

/** An open log: the server writes to `fd`; `since` returns the end of what was written after a size that `size` returned. */
export interface ServerLog {
  fd: number;
  size(): Promise<number>;
  since(offset: number): Promise<string>;
  close(): Promise<void>;
}

/** Opens a log to append to. Past 10 MB, now or later, its content moves to `<path>.1` and it starts again. */
export async function openServerLog(path: string): Promise<ServerLog> {
  // In append mode the file can be truncated while a server holds it open.
  const file = await open(path, "a+", 0o600);
  const trim = async () => {
    if ((await file.stat()).size <= MAX_BYTES) return;
    await copyFile(path, `${path}.1`);
    await file.truncate(0);
  };
  await trim();
  let trimming = Promise.resolve();
  // A log that cannot be trimmed now (full disk) is tried again at the next check.
  const check = () => {
    trimming = trim().catch(() => undefined);
  };
  const timer = setInterval(check, CHECK_EVERY_MS).unref();
  return {
    fd: file.fd,
    size: async () => (await file.stat()).size,
    since: async (offset) => {
      const { size } = await file.stat();
      // If it was truncated meanwhile, all of it is new.
      const length = Math.min(size < offset ? size : size - offset, TAIL_BYTES);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
      return buffer.toString("utf8", 0, bytesRead).trim();
    },
    close: async () => {
      clearInterval(timer);
      await trimming;
      await file.close();
    },
  };
}
