import { expect, test } from "vitest";
import { parseTilePath } from "../../../src/record/log/tile-path.ts";

test.each([
  ["0/000", { level: 0, n: 0, width: 256 }],
  ["1/x001/234", { level: 1, n: 1234, width: 256 }],
  ["0/x001/x234/067.p/8", { level: 0, n: 1_234_067, width: 8 }],
  ["entries/012.p/255", { level: "entries", n: 12, width: 255 }],
])("reads %s", (path, expected) => expect(parseTilePath(path)).toEqual(expected));

test.each(["", "0", "0/1", "0/0001", "6/000", "0/x000/001", "0/001.p/0", "0/001.p/256", "0/001/..", "data/000"])(
  "refuses %s",
  (path) => expect(parseTilePath(path)).toBeNull(),
);
