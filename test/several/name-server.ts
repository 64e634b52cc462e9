import { createSocket } from "node:dgram";
import { once } from "node:events";

/** A name server that tells the addresses of one name, as Docker's does of a service that is scaled. */
export interface NameServer {
  port: number;
  /** From now on: none where the name is not to be known. */
  addresses: string[];
  close(): void;
}

const HEADER = 12;
const A = 1;
const NAME_ERROR = 3;

/** Starts it on loopback. It answers questions for A and knows no other kind. */
export async function startNameServer(name: string): Promise<NameServer> {
  const socket = createSocket("udp4");
  const server: NameServer = { port: 0, addresses: [], close: () => socket.close() };
  socket.on("message", (question, from) => {
    const { asked, type, end } = readQuestion(question);
    const isKnown = asked === name && server.addresses.length > 0;
    const told = isKnown && type === A ? server.addresses : [];
    const header = Buffer.alloc(HEADER);
    question.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8580 | (isKnown ? 0 : NAME_ERROR), 2); // an answer, by whom it is up to
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(told.length, 6);
    const records = told.map((address) =>
      // the name is the one in the question; one second to live
      Buffer.from([0xc0, HEADER, 0, A, 0, 1, 0, 0, 0, 1, 0, 4, ...address.split(".").map(Number)]),
    );
    socket.send(Buffer.concat([header, question.subarray(HEADER, end), ...records]), from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  server.port = socket.address().port;
  return server;
}

function readQuestion(message: Buffer): { asked: string; type: number; end: number } {
  const labels: string[] = [];
  let at = HEADER;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { asked: labels.join("."), type: message.readUInt16BE(at + 1), end: at + 5 };
}
