import { openPipeline, type Pipeline } from "../../src/db/client.ts";
import { createPasses, type Passes } from "../../src/pass/passes.ts";
import { whenFileEnds } from "./file-end.ts";

const pipelines = new Map<string, Pipeline>();

/** Passes on a database, without a state in memory; what they connect with is closed after the tests of the file. */
export function passesTo(url: string): Passes {
  let pipeline = pipelines.get(url);
  if (pipeline === undefined) {
    const opened = openPipeline(url, { name: "test" });
    pipelines.set(url, opened);
    whenFileEnds(async () => {
      pipelines.delete(url);
      await opened.end();
    });
    pipeline = opened;
  }
  return createPasses(pipeline);
}
