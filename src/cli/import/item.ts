import type { FileRow } from "../../import/row.ts";
import type { Line } from "./csv-lines.ts";

/** A row, or a refused line with its reason. */
export type FileItem = { ok: true; row: FileRow } | { ok: false; line: number; reason: string };

/** Parses the lines of a file. */
export interface FileReader {
  /** Names of unused columns; empty if lines have no header. */
  ignored: string[];
  read(lines: Line[]): FileItem[];
  /** The rest when the file ends. */
  end(): FileItem[];
}
