import { checkExtends, openNote, tilePath, type Checkpoint, type Tile } from "./checkpoint.ts";
import { declaredError, FIRST_ENTRY } from "./declared-log.ts";
import { ConnectionError, type DeclaredLogError, InconsistentLogError, StaleLogError } from "./errors.ts";
import type { Fetch } from "./retry.ts";
import type { Wait } from "./wait.ts";

/** Unchecked checkpoints that are kept, each proven with about one request. */
const MOST_SEEN = 100;
/** A read that finds an older log than another process showed is repeated after these waits. */
const WAITS_WHEN_BEHIND = [1, 2, 4];

/** How the log is read and checked. */
export interface PublicLogOptions {
  /** Address of the instance. */
  url: string;
  fetch: Fetch;
  wait: Wait;
  /** A process that is behind for longer than this shows a log that was shortened. */
  longestLagSeconds: number;
  logKey: string | undefined;
}

/** A checkpoint and when it was seen for the first time. */
type Seen = Checkpoint & { seenAtMs: number };

/** The checkpoints of the public log that a client has seen, and the proof that the log still begins with them. */
export class PublicLog {
  readonly #options: PublicLogOptions;
  /** What the log must begin with: the newest checkpoint that was checked, or the first one seen. */
  #base: Seen | null = null;
  /** Checkpoints that were seen and not checked yet, by size and root. */
  readonly #seen = new Map<string, Seen>();
  #latest: Seen | null = null;
  /** Another log was declared: this client can check nothing any more. */
  #declared: DeclaredLogError | null = null;
  /** The checkpoint whose tiles were missing first; it is kept for the longest lag, however many others are seen. */
  #awaited: Seen | null = null;

  constructor(options: PublicLogOptions) {
    this.#options = options;
  }

  /** The newest checkpoint that was seen, with the name of the log if that was seen in any. */
  get latest(): Checkpoint | null {
    if (this.#latest === null) return null;
    const origin = this.#latest.origin ?? this.#base?.origin;
    return { ...this.#latest, ...(origin !== undefined && { origin }) };
  }

  /** Keeps a checkpoint for the next check. Beyond the limit the oldest unchecked one is dropped. */
  note({ seenAtMs = Date.now(), ...seen }: Checkpoint): Seen {
    const name = `${seen.size} ${seen.root}`;
    const checkpoint = { ...(this.#seen.get(name) ?? { seenAtMs }), ...seen };
    this.#base ??= checkpoint;
    this.#seen.set(name, checkpoint);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MOST_SEEN && oldest !== undefined) this.#seen.delete(oldest);
    if (this.#latest === null || seen.size > this.#latest.size) this.#latest = checkpoint;
    return checkpoint;
  }

  /**
   * Checks that the log still begins with every checkpoint that was seen.
   * @throws InconsistentLogError if it does not; DeclaredLogError if another log was declared in its place; StaleLogError
   * if a process is behind, so that some stay unchecked
   */
  async check(signal: AbortSignal): Promise<Checkpoint> {
    if (this.#declared !== null) throw this.#declared;
    const held = [...(this.#base === null ? [] : [this.#base]), ...this.#seen.values()];
    try {
      return await this.#check(signal);
    } catch (error) {
      if (!(error instanceof InconsistentLogError || error instanceof StaleLogError)) throw error;
      this.#declared = await this.#findDeclared(held, signal);
      throw this.#declared ?? error;
    }
  }

  /** The error of a log that was declared in place of one that was seen; null if none was. */
  async #findDeclared(held: readonly Seen[], signal: AbortSignal): Promise<DeclaredLogError | null> {
    const bytesOf = async (path: string) => {
      const response = await this.#request(path, signal);
      if (!response.ok) throw unexpected(response, path);
      return Buffer.from(await response.arrayBuffer());
    };
    const { logKey } = this.#options;
    const origins = new Set(held.flatMap(({ origin }) => origin ?? []));
    if (logKey !== undefined) origins.add(logKey.split("+")[0] ?? "");
    if (origins.size === 0) return null;
    try {
      const newest = openNote((await bytesOf("checkpoint")).toString());
      const read = (tile: Tile) => bytesOf(tilePath(tile, newest.size) ?? "");
      return await declaredError({ bytes: await bytesOf(FIRST_ENTRY), newest, read, held, origins, logKey });
    } catch {
      signal.throwIfAborted();
      return null; // nothing that proves a declaration
    }
  }

  async #check(signal: AbortSignal): Promise<Checkpoint> {
    const base = this.#base;
    const seen = [...this.#seen]; // later ones may be newer than the checkpoint that is read now
    const known = [...(base === null ? [] : [base]), ...seen.map(([, checkpoint]) => checkpoint)];
    const newest = await this.#readNewest(Math.max(...known.map(({ size }) => size)), signal);
    const behind = this.#behindError(known, newest);
    const awaited = this.#awaited === null ? [] : [this.#awaited];
    const tiles = new Map<string, Promise<Buffer>>();
    const read = (tile: Tile) => {
      const name = `${tile.level}/${tile.n}`;
      const bytes =
        tiles.get(name) ?? this.#readTile(tile, { newest, old: this.#newestOld([...known, ...awaited]) }, signal);
      tiles.set(name, bytes);
      return bytes;
    };
    if (base !== null) {
      if (behind !== null && base.size > newest.size) throw behind;
      await checkExtends(base, newest, read);
    }
    this.#base = newest;
    // each is removed as soon as it is proven, so that a check after a failed one continues from there
    for (const [name, checkpoint] of seen) {
      if (checkpoint.size > newest.size) continue;
      await checkExtends(checkpoint, newest, read);
      this.#seen.delete(name);
    }
    this.#awaited = null;
    if (behind !== null) throw behind;
    return newest;
  }

  /** The error of a log that is shorter than a known one, by the time since that was seen; null if it is not shorter. */
  #behindError(known: readonly Seen[], newest: Seen): InconsistentLogError | StaleLogError | null {
    const ahead = known.filter(({ size }) => size > newest.size);
    const [first] = ahead.toSorted((one, other) => one.seenAtMs - other.seenAtMs);
    if (first === undefined) return null;
    const seconds = secondsSince(first);
    if (seconds > this.#options.longestLagSeconds)
      return new InconsistentLogError(
        `the public log is shorter than it was ${seconds} s ago: checkpoint ${first.size} ${first.root} was shown then, ` +
          `${newest.size} ${newest.root} is shown now`,
      );
    return new StaleLogError(
      `expected a log of at least ${first.size} entries, shown ${seconds} s ago, found ${newest.size} entries: ` +
        "this process serves an older log than another one; try again",
    );
  }

  /** The newest of the checkpoints that are read until one has the expected size. */
  async #readNewest(expected: number, signal: AbortSignal): Promise<Seen> {
    let newest: Seen | null = null;
    const read = async () => {
      const response = await this.#request("checkpoint", signal);
      if (!response.ok) throw unexpected(response, "checkpoint");
      const checkpoint = this.note(openNote(await response.text(), this.#options.logKey));
      newest = newest === null || checkpoint.size > newest.size ? checkpoint : newest;
      return newest;
    };
    return this.#readUntil(read, ({ size }) => size >= expected, signal);
  }

  /** The newest of these checkpoints that was seen before the longest lag: every process has its entries. */
  #newestOld(known: readonly Seen[]): Seen | null {
    const before = Date.now() - this.#options.longestLagSeconds * 1_000;
    const old = known.filter(({ seenAtMs }) => seenAtMs < before).toSorted((one, other) => other.size - one.size);
    return old[0] ?? null;
  }

  async #readTile(tile: Tile, known: { newest: Seen; old: Seen | null }, signal: AbortSignal): Promise<Buffer> {
    const path = tilePath(tile, known.newest.size) ?? "";
    const read = () => this.#request(path, signal);
    const response = await this.#readUntil(read, ({ status }) => status !== 404, signal);
    if (response.status === 404) throw await this.#missingError(tile, known, signal);
    if (!response.ok) throw unexpected(response, path);
    return Buffer.from(await response.arrayBuffer());
  }

  /** The error of a missing tile: a process that is behind has fewer hashes of it, but those of an old checkpoint. */
  async #missingError(
    tile: Tile,
    { newest, old }: { newest: Seen; old: Seen | null },
    signal: AbortSignal,
  ): Promise<InconsistentLogError | StaleLogError> {
    const path = old && tilePath(tile, Math.min(old.size, newest.size));
    if (old !== null && path !== null && (await this.#request(path, signal)).status === 404)
      return new InconsistentLogError(
        `expected ${path} of the public log, found none, though checkpoint ${old.size} ${old.root} was shown ` +
          `${secondsSince(old)} s ago: entries are withheld`,
      );
    if (this.#awaited === null || this.#newestOld([this.#awaited]) !== null) this.#awaited = newest;
    return new StaleLogError(
      `expected ${tilePath(tile, newest.size)} of the public log, which its checkpoint covers, found none: this process ` +
        "serves an older log than another one, or withholds entries; try again",
    );
  }

  /** Repeats a read while the process that responds is behind another one; returns the last result. */
  async #readUntil<T>(read: () => Promise<T>, isCurrent: (value: T) => boolean, signal: AbortSignal): Promise<T> {
    let value = await read();
    for (const seconds of WAITS_WHEN_BEHIND) {
      if (isCurrent(value)) break;
      await this.#options.wait(seconds, signal);
      value = await read();
    }
    return value;
  }

  #request(path: string, signal: AbortSignal): Promise<Response> {
    return this.#options.fetch(new Request(`${this.#options.url}/log/${path}`, { signal }));
  }
}

function secondsSince({ seenAtMs }: Seen): number {
  return Math.round((Date.now() - seenAtMs) / 1_000);
}

function unexpected({ status }: Response, path: string): ConnectionError {
  return new ConnectionError(`expected ${path} of the public log, got status ${status}`);
}
