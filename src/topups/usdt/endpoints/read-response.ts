import { createThread } from "../../../thread.ts";
import { reduceResponse, type RpcRequest } from "./reduce-response.ts";
import type { ReduceTask } from "./reduce-thread.ts";

/** A range with a longer response is split in half. */
const LONGEST_RESPONSE = 4_000_000;
/** Larger bodies are parsed in a thread: 4 MB of nested JSON can take some hundred milliseconds. */
export const LARGEST_HERE = 32 << 10;

/** A response is longer than {@link LONGEST_RESPONSE}. */
export class ResponseSizeError extends Error {}

const thread = createThread<ReduceTask, string>(new URL("reduce-thread.ts", import.meta.url), {
  deadlineMs: 5_000,
  idleMs: 120_000,
  maxTasks: 32, // two endpoints, each with a few receipts
  heapMb: 256,
});

/**
 * Reads the response to a JSON-RPC request and returns the part of it that is used, as JSON. A large one is parsed in a
 * thread, within 5 s and 256 MB.
 * @throws Error with the endpoint's fault; ThreadLimitError if it exceeds a limit
 */
export async function readResponse(request: RpcRequest, body: Uint8Array): Promise<string> {
  return body.length > LARGEST_HERE ? thread.run({ request, body }) : reduceResponse(request, body);
}

/** Reads a body to its end. @throws ResponseSizeError if it is longer than {@link LONGEST_RESPONSE} */
export async function readBody(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > LONGEST_RESPONSE) throw new ResponseSizeError(`expected at most ${LONGEST_RESPONSE} bytes, got more`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
