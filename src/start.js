#!/usr/bin/env node
// Plain JavaScript on purpose: an older Node must be able to read this far to say what is wrong.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(
    `roundhouse needs Node 22.19 or newer and this is ${process.versions.node}; ` +
      "on Linux `npm ci` brings Node 24 with it: use `npm start` or `npx roundhouse`, elsewhere install Node 24",
  );
  process.exit(1);
}
// How far a worker's heap may grow, in percent of what was live, before V8 collects all of it. By default it grows to a
// multiple, by objects of polls that outlived the young generation: docs/benchmarks.md. It must be set before the modules
// are loaded: V8 computes the next limit when a collection ends, and one ends during that.
if (["up", "worker"].includes(process.argv[2] ?? "")) {
  const { setFlagsFromString } = await import("node:v8");
  setFlagsFromString("--heap-growing-percent=40");
  // V8 also keeps the pages that young objects took in its largest moment, which is this: they keep to a megabyte until the
  // work starts. From then on src/cli/run/heap.ts sets both.
  setFlagsFromString("--semi-space-growth-factor=1");
}
// Keeps what was compiled for the next start, which then takes half the time; where that cannot be written it does nothing.
const { enableCompileCache } = await import("node:module");
enableCompileCache();
await import("./main.ts");
