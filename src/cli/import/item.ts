import type { Line } from "./csv-lines.ts";

/** A row of the file, its fields as they came, trimmed; null where the column is missing or the field empty. */
export interface FileRow {
  line: number;
  roundId: string | null;
  multiplier: string | null;
  occurredAt: string | null;
  hash: string | null;
}

/** A row, or a line that is none, with the reason. */
export type FileItem = { ok: true; row: FileRow } | { ok: false; line: number; reason: string };

/** Reads the lines of a file. */
export interface FileReader {
  /** Columns that are not used, by name; none where lines have no header. */
  ignored: string[];
  read(lines: Line[]): FileItem[];
  /** What is left when the file ends. */
  end(): FileItem[];
}
