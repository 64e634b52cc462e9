import { readFileSync } from "node:fs";
import path from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { housesSchema } from "./houses-schema.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(path.join(ROOT, file), "utf8");
const ajv = new Ajv2020({ strict: false });
formats.default(ajv);
const validate = ajv.compile(housesSchema());

describe("the JSON Schema of the houses file", () => {
  it.each(["houses.yaml", "houses.real.yaml"])("accepts %s, whose first line names it for editors", (file) => {
    expect(read(file)).toMatch(/^# yaml-language-server: \$schema=docs\/houses\.schema\.json\n/);
    expect(validate(parse(read(file))), JSON.stringify(validate.errors)).toBe(true);
  });

  it.each([
    ["an unknown field", /poll_every_ms:/, "poll_every:"],
    ["a wrong palette", /colors:\n(?: +- \{.*\n)+/, "colors: rainbow\n"],
    ["a number that is too small", /poll_every_ms: \d+/, "poll_every_ms: 5"],
  ])("refuses %s", (_, from, to) => {
    const changed = read("houses.yaml").replace(from, to);
    expect(changed).not.toBe(read("houses.yaml"));
    expect(validate(parse(changed))).toBe(false);
  });

  it("describes every field of a house and of a table", () => {
    const shape = z.object({ properties: z.record(z.string(), z.object({ description: z.string() })) });
    const file = z
      .object({ properties: z.object({ houses: z.object({ items: shape.loose() }) }) })
      .parse(housesSchema());
    expect(Object.keys(file.properties.houses.items.properties).length).toBeGreaterThan(10);
  });
});
