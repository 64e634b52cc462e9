import { afterAll } from "vitest";
import { openPipeline, type Pipeline } from "../../src/db/client.ts";
import { createPasses, type Passes } from "../../src/pass/passes.ts";

const pipelines = new Map<string, Pipeline>();
afterAll(async () => {
  for (const pipeline of pipelines.values()) await pipeline.end();
});

/** Passes on a database, without a state in memory; what they connect with is closed after the tests of the file. */
export function passesTo(url: string): Passes {
  const pipeline = pipelines.get(url) ?? openPipeline(url, { name: "test" });
  pipelines.set(url, pipeline);
  return createPasses(pipeline);
}
