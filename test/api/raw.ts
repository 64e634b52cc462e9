import { connect as dial } from "node:net";
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";

/** One response as it was received. */
export interface Reply {
  status: number;
  /** The status line and the headers, as they came. */
  head: string;
  headers: Headers;
  /** Decoded. */
  body: string;
}

const BREAK = "\r\n\r\n";

/** Sends bytes unchanged, and returns every response until the server closes the connection. */
export function exchange(port: number, bytes: string | Buffer): Promise<Reply[]> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    const socket = dial(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (part: Buffer) => parts.push(part));
    // a server that refuses data still in flight may reset the connection; what it sent before counts
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "ECONNRESET" && error.code !== "EPIPE") reject(error);
    });
    socket.on("close", () => {
      try {
        resolve(repliesIn(Buffer.concat(parts)));
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
  });
}

function repliesIn(bytes: Buffer): Reply[] {
  const replies: Reply[] = [];
  for (let rest = bytes; rest.length > 0;) {
    const end = rest.indexOf(BREAK);
    if (end === -1) throw new Error(`expected a whole head, got ${JSON.stringify(rest.toString("latin1", 0, 200))}`);
    const head = rest.toString("latin1", 0, end);
    const [first = "", ...lines] = head.split("\r\n");
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1]);
    const headers = new Headers(lines.map((line): [string, string] => split(line, ": ")));
    const { body, length } = bodyIn(rest.subarray(end + BREAK.length), status, headers);
    rest = rest.subarray(end + BREAK.length + length);
    if (status >= 200) replies.push({ status, head, headers, body: decoded(body, headers).toString() });
  }
  return replies;
}

/** The length of the body after a head: 0 if another response or the end follows immediately, as with HEAD. */
function bodyIn(rest: Buffer, status: number, headers: Headers): { body: Buffer; length: number } {
  const isNone = status < 200 || status === 204 || status === 304 || rest.length === 0;
  if (isNone || rest.toString("latin1", 0, 9) === "HTTP/1.1 ") return { body: Buffer.alloc(0), length: 0 };
  if (headers.get("transfer-encoding") !== "chunked") {
    // HTTP/1.0 has responses that end with the connection
    const length = Number(headers.get("content-length") ?? rest.length);
    return { body: rest.subarray(0, length), length };
  }
  const chunks: Buffer[] = [];
  for (let at = 0; ;) {
    const lineEnd = rest.indexOf("\r\n", at);
    const size = Number.parseInt(rest.toString("latin1", at, lineEnd), 16);
    chunks.push(rest.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
    if (size === 0) return { body: Buffer.concat(chunks), length: at };
  }
}

function decoded(body: Buffer, headers: Headers): Buffer {
  const encoding = headers.get("content-encoding");
  if (encoding === null || body.length === 0) return body;
  if (encoding === "br") return brotliDecompressSync(body);
  return encoding === "gzip" ? gunzipSync(body) : inflateSync(body);
}

function split(text: string, at: string): [string, string] {
  const place = text.indexOf(at);
  return [text.slice(0, place), text.slice(place + at.length)];
}
