import { readFileSync } from "node:fs";
import path from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
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

  it("describes every field for itself, and states what holds without it", () => {
    const fields = fieldsOf(housesSchema());
    expect(new Set(fields.map(({ name }) => name)).size).toBeGreaterThan(45);
    const texts = new Map(fields.map(({ name, description }) => [name, description]));
    expect(new Set(texts.values()).size).toBe(texts.size);
    for (const { name, description, isOptional, ...field } of fields) {
      expect(description, name).toMatch(/^[A-Z0-9a-z].*\.$/);
      if (isOptional && !("default" in field)) expect(description, name).toContain("Without it");
    }
  });

  it("has bounds for every number, text and list", () => {
    const bounds: Record<string, string[]> = {
      number: ["maximum"],
      integer: ["maximum"],
      string: ["maxLength", "pattern", "format"],
      array: ["maxItems"],
    };
    const unbounded = fieldsOf(housesSchema()).filter((field) => {
      const needed = bounds[String(field.type)] ?? [];
      return needed.length > 0 && ![...needed, "enum", "const"].some((bound) => bound in field);
    });
    expect(unbounded.map(({ name }) => name)).toEqual(["houses"]);
  });
});

interface Field {
  name: string;
  isOptional: boolean;
  description: string;
  type?: unknown;
}

/** Every property of every schema inside a schema. */
function fieldsOf(schema: unknown): Field[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {}, required = [] } = schema as { properties?: Record<string, Field>; required?: string[] };
  const own = Object.entries(properties).map(([name, field]) => ({
    ...field,
    name,
    isOptional: !required.includes(name),
  }));
  return [...own, ...Object.values(schema).flatMap(fieldsOf)];
}
