import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // packages of the sample client bring tests of their own; `npm run several`: several processes each, for half a minute
    // and longer
    exclude: ["**/node_modules/**", ...(process.env["SEVERAL"] === undefined ? ["test/several/**"] : [])],
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/setup-file.ts"],
    // A worker loads the modules once for all of its files, a sixth less processor time for the suite; no test replaces
    // modules.
    isolate: false,
    // Node reads the modules itself, as in production: a sixth less processor time than through Vite.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Processes of their own: the kernel ends a test's private servers with the process whose main thread started them.
    pool: "forks",
    // New objects of six processes: with V8's 16 MB a tenth of the processor time goes to their collection.
    execArgv: ["--max-semi-space-size=64"],
    // Tests mostly wait for processes they start. Each worker has one of Redis' 16 logical databases.
    maxWorkers: 6,
    sequence: { sequencer: LongestFirst },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } },
  },
});
