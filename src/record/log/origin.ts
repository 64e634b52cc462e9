/** The name of a log: its host, the beginning of its key, and the number of the log from the second on. */
export function originOf(publicUrl: string | undefined, publicKey: Buffer, id: number): string {
  const host = publicUrl === undefined ? "localhost" : new URL(publicUrl).host;
  return `${host}/log/${publicKey.toString("hex").slice(0, 8)}${id === 1 ? "" : `/${id}`}`;
}

/** The number of a log by its origin. */
export function logNumberOf(origin: string): number {
  return Number(/\/log\/[0-9a-f]{8}\/(\d{1,9})$/.exec(origin)?.[1] ?? 1);
}
