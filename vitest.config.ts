import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // packages of the sample client bring tests of their own; `npm run several`: several processes each, for half a minute
    // and longer
    exclude: ["**/node_modules/**", ...(process.env["SEVERAL"] === undefined ? ["test/several/**"] : [])],
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/setup-file.ts"],
    // A worker loads the modules once for all of its files, which was a third of the processor time of the suite; no test
    // replaces modules.
    isolate: false,
    // Processes of their own: the kernel ends a test's private servers with the process whose main thread started them.
    pool: "forks",
    // Two cores are what the suite is measured on, and tests mostly wait for processes they start; each worker also has one of Redis' 16 logical databases.
    maxWorkers: 6,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
