import { createSocket } from "node:dgram";
import { once } from "node:events";

/** A record of a response: an address, or another name. */
export type NameRecord = { a: string } | { aaaa: string } | { cname: string };

/** A name server on loopback with set responses for each name. */
export interface NameServer {
  /** Its address, in the form that a resolver takes. */
  address: string;
  /** Queries as `A name` or `AAAA name`, in the order of their arrival. One that a resolver sends again is listed once. */
  asked: string[];
  /**
   * Sets the responses to a name: each query of a family gets the next of the lists, then the last one again. "silence"
   * sends nothing, "garbage" a malformed response.
   */
  on(name: string, ...responses: (readonly NameRecord[] | "silence" | "garbage")[]): void;
  /** Delays all responses, or those for one name. */
  setDelay(ms: number, name?: string): void;
  close(): Promise<void>;
}

const TYPES = { a: 1, cname: 5, aaaa: 28 } as const;

/** Starts it on a free port of 127.0.0.1, or on the given host and port. */
export async function startNameServer({ host = "127.0.0.1", port = 0 } = {}): Promise<NameServer> {
  const socket = createSocket("udp4");
  const delays = new Map<string | null, number>();
  let isClosed = false;
  const responsesByName = new Map<string, (readonly NameRecord[] | "silence" | "garbage")[]>();
  const times = new Map<string, number>();
  const timeOf = new Map<string, number>();
  const asked: string[] = [];
  socket.on("message", (query, from) => {
    const { name, type, end } = readQuestion(query);
    const send = (message: Buffer, to: { port: number; address: string }) =>
      setTimeout(
        () => isClosed || socket.send(message, to.port, to.address),
        delays.get(name) ?? delays.get(null) ?? 0,
      );
    const question = `${type === TYPES.a ? "A" : "AAAA"} ${name}`;
    const id = `${query.readUInt16BE(0)} ${question}`; // the same if it is sent again
    const time = timeOf.get(id) ?? times.get(question) ?? 0;
    if (!timeOf.has(id)) {
      asked.push(question);
      times.set(question, time + 1);
      timeOf.set(id, time);
    }
    const responses = responsesByName.get(name);
    const response = responses?.[Math.min(time, responses.length - 1)];
    if (response === "silence") return;
    if (response === "garbage") {
      send(Buffer.from("not DNS"), from);
      return;
    }
    const records = (response ?? []).filter((record) => "cname" in record || typeOf(record) === type);
    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(0x8180 | (response === undefined ? 3 : 0), 2); // a recursive response, or NXDOMAIN
    header.writeUInt16BE(records.length, 6);
    header.fill(0, 8, 12);
    let owner = name;
    const body = records.map((record) => {
      const written = writeRecord(owner, record);
      if ("cname" in record) owner = record.cname;
      return written;
    });
    send(Buffer.concat([header, query.subarray(12, end), ...body]), from);
  });
  socket.bind(port, host);
  await once(socket, "listening");
  return {
    address: `${host}:${socket.address().port}`,
    asked,
    on: (name, ...responses) => void responsesByName.set(name, responses),
    setDelay: (ms, name) => void delays.set(name ?? null, ms),
    close() {
      isClosed = true;
      return new Promise((resolve) => socket.close(resolve));
    },
  };
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** RFC 1035, 4.1.3: who, type, class, seconds, length, data. A TTL of 0: nothing may be cached, as in DNS rebinding. */
function writeRecord(owner: string, record: NameRecord): Buffer {
  const data = dataOf(record);
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(typeOf(record), 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([writeName(owner), fixed, data]);
}

function typeOf(record: NameRecord): number {
  return "a" in record ? TYPES.a : "aaaa" in record ? TYPES.aaaa : TYPES.cname;
}

function dataOf(record: NameRecord): Buffer {
  if ("a" in record) return Buffer.from(record.a.split(".").map(Number));
  if ("cname" in record) return writeName(record.cname);
  // the URL parser writes any IPv6 address in hexadecimal groups
  const [head = "", tail = ""] = new URL(`http://[${record.aaaa}]`).hostname.slice(1, -1).split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)));
  const [first, last] = [groups(head), groups(tail)];
  const all = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 255]));
}

function writeName(name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}
