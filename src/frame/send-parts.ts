import type { Request } from "express";
import type { Read } from "../db/reads.ts";
import { clientGone } from "../http/client-gone.ts";
import { setFileHeaders } from "./responder.ts";
import type { FileInParts, PageReply } from "./view.ts";

/**
 * Sends a file part by part, as fast as its client reads it: the next part is read when the client has most of those before
 * it. A slow client occupies no read of the database meanwhile.
 * @throws what a part throws. Before the first part nothing is sent; later the error handler closes the connection, so that the
 * client knows that the file is not whole.
 */
export async function sendParts(
  request: Request,
  response: PageReply,
  { file, type, parts }: FileInParts,
  read: Read,
): Promise<void> {
  if (request.method === "HEAD") {
    setFileHeaders(response, { file, type });
    response.end();
    return;
  }
  const gone = clientGone(response);
  let wake = () => {};
  response.on("drain", () => wake());
  gone.addEventListener("abort", () => wake());
  for await (const part of parts(read)) {
    gone.throwIfAborted();
    if (!response.headersSent) setFileHeaders(response, { file, type });
    if (response.write(part)) continue;
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
  response.end();
}
