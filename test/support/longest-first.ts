import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The files that take longest, in this order. */
const LONGEST = [
  "cli/up.test.ts",
  "security/authorization.test.ts",
  "topups/usdt.test.ts",
  "ops/fault.browser.test.ts",
  "ops/pages.browser.test.ts",
  "cli/parts.test.ts",
  "record/log/publish-log.test.ts",
  "ops/data.browser.test.ts",
  "security/floods.test.ts",
  "console/newcomer.browser.test.ts",
  "ops/queues.browser.test.ts",
  "topups/rpc-response.test.ts",
  "queue/worker.test.ts",
  "houses/replay/recorded.test.ts",
  "fuzz/worst.test.ts",
  "db/client.test.ts",
  "queue/silent.test.ts",
];

/**
 * Starts the longest files first, so that none of them runs alone at the end: Vitest knows durations from an earlier run,
 * and on a new machine only sizes.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.findIndex((file) => moduleId.endsWith(`/test/${file}`));
      return at === -1 ? LONGEST.length : at;
    };
    const sorted = await super.sort(files); // oxlint-disable-line unicorn/no-array-sort -- no array's
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}
