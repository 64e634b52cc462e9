import { closeSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import path from "node:path";
import { randomUUID } from "node:crypto";
import { createFolder } from "../create-folder.ts";
import { reasonOf, UsageError } from "../errors.ts";
import type { HouseRound } from "../houses/contract.ts";

/** A round of a file. */
export interface StagedRound extends HouseRound {
  line: number;
}

/** The rounds of a file until they are stored; 12 bytes of each stay in memory. */
export interface StagedRounds {
  /** Adds the round of a line; each call has a higher line. */
  add: (line: number, round: HouseRound) => void;
  /** The rounds of these lines, in their order; lines that are close together are read in one piece. */
  list: (lines: Int32Array) => StagedRound[];
  close: () => void;
}

/** Between two fields: a file with this character is refused when it is read. */
const SEPARATOR = "\0";
const FIELDS = 6;
/** Characters that are written in one piece. */
const PIECE = 1 << 18;

/**
 * Creates an empty temporary file of rounds in a folder. Its name is removed first, so that the system removes the file
 * when the process ends. Calls wait for the disk: mostly for the system's cache, and an import has nothing else to do.
 *
 * @throws UsageError if the folder cannot be written to
 */
export async function openStagedRounds(folder: string): Promise<StagedRounds> {
  const file = await openWithoutName(folder);
  const index = createIndex();
  let size = 0;
  let unwritten = "";
  const write = () => {
    try {
      writeAll(file, Buffer.from(unwritten));
    } catch (error) {
      throw new Error(`the rounds of the file cannot be kept in ${folder} until they are stored`, { cause: error });
    }
    unwritten = "";
  };
  const read = (first: number, last: number): StagedRound[] => {
    const start = index.startOf(first) ?? size;
    return parseRounds(readAll(file, start, (index.startOf(last + 1) ?? size) - start).toString());
  };
  return {
    add(line, { roundId, hundredths, rawValue, occurredAt, hash }) {
      index.add(line, size);
      const text = `${line}\0${roundId}\0${hundredths}\0${rawValue}\0${occurredAt ?? ""}\0${hash ?? ""}\0`;
      size += Buffer.byteLength(text);
      unwritten += text;
      if (unwritten.length >= PIECE) write();
    },
    list(lines) {
      if (lines.length === 0) return [];
      if (unwritten !== "") write();
      const places = index.placesOf(lines);
      const first = places.reduce((low, place) => Math.min(low, place));
      const last = places.reduce((high, place) => Math.max(high, place));
      if (last - first >= lines.length * 2) return Array.from(places).flatMap((place) => read(place, place));
      const rounds = read(first, last);
      return Array.from(places).flatMap((place) => rounds[place - first] ?? []);
    },
    close: () => closeSync(file),
  };
}

/** The lines of rounds, and where in the file each round starts. */
function createIndex() {
  let count = 0;
  let lines = new Int32Array(1024);
  let starts = new Float64Array(1024);
  const placeOf = (line: number): number => {
    let [from, to] = [0, count];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((lines[middle] ?? 0) < line) from = middle + 1;
      else to = middle;
    }
    if (from === count || lines[from] !== line) throw new Error(`line ${line} has no staged round`);
    return from;
  };
  return {
    add(line: number, start: number): void {
      if (count === lines.length) {
        const grown = { lines: new Int32Array(count * 2), starts: new Float64Array(count * 2) };
        grown.lines.set(lines);
        grown.starts.set(starts);
        ({ lines, starts } = grown);
      }
      lines[count] = line;
      starts[count] = start;
      count += 1;
    },
    /** Null after the last place. */
    startOf: (place: number): number | null => (place < count ? (starts[place] ?? 0) : null),
    /** The places of lines, most of which follow each other in either direction. */
    placesOf(asked: Int32Array): Int32Array {
      let place = -1;
      return asked.map((line) => {
        if (lines[place + 1] === line) place += 1;
        else if (lines[place - 1] === line) place -= 1;
        else place = placeOf(line);
        return place;
      });
    },
  };
}

async function openWithoutName(folder: string): Promise<number> {
  const name = path.join(folder, `import-${randomUUID()}.tmp`);
  try {
    await createFolder(folder, 0o711);
    const file = openSync(name, "wx+", 0o600);
    rmSync(name);
    return file;
  } catch (error) {
    throw new UsageError(
      `DATA_DIR must be a folder that can be written to, because an import keeps rounds there: ${reasonOf(error)}`,
    );
  }
}

function writeAll(file: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done);
}

function readAll(file: number, from: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let done = 0; done < length;) {
    const count = readSync(file, bytes, done, length - done, from + done);
    if (count === 0) throw new Error(`expected ${length} bytes of staged rounds at ${from}, found ${done}`);
    done += count;
  }
  return bytes;
}

function parseRounds(text: string): StagedRound[] {
  const fields = text.split(SEPARATOR);
  if (fields.length % FIELDS !== 1)
    throw new Error(`expected ${FIELDS} fields per staged round, found ${fields.length - 1}`);
  const rounds: StagedRound[] = [];
  for (let at = 0; at + FIELDS < fields.length; at += FIELDS) {
    rounds.push({
      line: Number(fields[at]),
      roundId: fields[at + 1] ?? "",
      hundredths: Number(fields[at + 2]),
      rawValue: fields[at + 3] ?? "",
      occurredAt: fields[at + 4] || null,
      hash: fields[at + 5] || null,
    });
  }
  return rounds;
}
