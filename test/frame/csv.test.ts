import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { expect, it } from "vitest";
import { csvField, csvText } from "../../src/csv.ts";

const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(",", '"', "\r", "\n", ";", "=", "-", "a", " ") }));

it("CSV that is written is read back as it was, whatever is in its fields", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text, text), { minLength: 1 }), (rows) => {
      const plain = rows.map((row) => `${row.map(csvField).join(",")}\n`).join("");
      expect(parse(plain, { record_delimiter: "\n" })).toEqual(rows);
    }),
  );
});

it("a spreadsheet gets the same fields, and no formula", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text, text), { minLength: 1 }), (rows) => {
      const read = parse(csvText(rows), { record_delimiter: "\r\n" });
      expect(read.map((row) => row.map((field) => field.replace(/^'/, "")))).toEqual(
        rows.map((row) => row.map((field) => field.replace(/^'/, ""))),
      );
      for (const field of read.flat()) expect(field).not.toMatch(/^(?:[=+@\t\r\n]|-(?!\d))/);
    }),
  );
});
