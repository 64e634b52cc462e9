import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { DESCRIBES_ALL } from "../../src/config/settings-text.ts";
import { generatedFiles } from "./generated.ts";

const files = await generatedFiles();

describe("generated documents", () => {
  it.each(Object.keys(files))("%s is what `npm run docs` makes of the code", (file) => {
    expect(readFileSync(path.join(import.meta.dirname, "../..", file), "utf8")).toBe(files[file]);
  });

  it("describe every setting", () => {
    expect(DESCRIBES_ALL).toBe(true);
    const settings = files["docs/settings.md"] ?? "";
    for (const name of ["DATABASE_URL", "SMTP_URL", "USDT_TOKEN"]) expect(settings).toContain(`| \`${name}\` |`);
  });
});
