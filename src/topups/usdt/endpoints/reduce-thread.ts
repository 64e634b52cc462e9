/** Parses large responses of chain endpoints in a thread, so that a malicious one cannot block the worker. */
import { runTasks } from "../../../thread.ts";
import { reduceResponse, type RpcRequest } from "./reduce-response.ts";

/** One response with its request. */
export interface ReduceTask {
  request: RpcRequest;
  body: Uint8Array;
}

runTasks(({ request, body }: ReduceTask): string => reduceResponse(request, body));
