import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";

/** A mail as it arrived. */
export interface ReceivedMail {
  /** From the envelope, not from the headers. */
  from: string;
  to: string[];
  /** Headers by their names in lower case, continued lines joined, encoded words read. */
  headers: Map<string, string>;
  /** The text, decoded. */
  text: string;
  /** All of it, as it came. */
  raw: string;
}

/** A mail server of a test. */
export interface TestMailServer {
  /** For SMTP_URL. */
  url: string;
  port: number;
  received: ReceivedMail[];
  /** Connections so far. */
  connections: number;
  /** Its reply to a recipient: a code such as 550, or null to accept it. */
  replyToRecipient: (address: string) => number | null;
  /** The same for a sender. */
  replyToSender: (address: string) => number | null;
  /** The first link of the newest mail to an address; undefined if there is none. */
  linkFor(address: string): string | undefined;
  close(): Promise<void>;
}

/** Starts a mail server on loopback, with an untrusted certificate if it uses TLS. */
export async function startMailServer(
  options: { tls?: "none" | "starttls" | "always"; port?: number; password?: string } = {},
): Promise<TestMailServer> {
  const { tls = "none", port = 0, password } = options;
  const received: ReceivedMail[] = [];
  const server = new SMTPServer({
    secure: tls === "always",
    authOptional: password === undefined,
    disabledCommands: [...(tls === "none" ? ["STARTTLS"] : []), ...(password === undefined ? ["AUTH"] : [])],
    allowInsecureAuth: true,
    disableReverseLookup: true,
    logger: false,
    onConnect(_, done) {
      made.connections += 1;
      done();
    },
    onAuth(auth, _, done) {
      if (auth.password === password) done(null, { user: auth.username ?? "" });
      else done(new Error("wrong password"));
    },
    onMailFrom({ address }, _, done) {
      done(refusal(made.replyToSender(address), address));
    },
    onRcptTo({ address }, _, done) {
      done(refusal(made.replyToRecipient(address), address));
    },
    onData(stream, { envelope }, done) {
      const parts: Buffer[] = [];
      stream.on("data", (part: Buffer) => parts.push(part));
      stream.on("end", () => {
        const from = envelope.mailFrom === false ? "" : envelope.mailFrom.address;
        received.push({ from, to: envelope.rcptTo.map(({ address }) => address), ...read(Buffer.concat(parts)) });
        done();
      });
    },
  });
  server.on("error", () => undefined); // a connection that a client cut
  server.listen(port, "127.0.0.1");
  await once(server.server, "listening");
  const { port: ownPort } = server.server.address() as AddressInfo;
  const made: TestMailServer = {
    url: `${tls === "always" ? "smtps" : "smtp"}://127.0.0.1:${ownPort}`,
    port: ownPort,
    received,
    connections: 0,
    replyToRecipient: () => null,
    replyToSender: () => null,
    linkFor: (address) => /https?:\S+/.exec(received.findLast(({ to }) => to.includes(address))?.text ?? "")?.[0],
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
  return made;
}

function refusal(code: number | null, address: string): Error | null {
  return code === null ? null : Object.assign(new Error(`not <${address}>`), { responseCode: code });
}

function read(message: Buffer): Pick<ReceivedMail, "headers" | "text" | "raw"> {
  const raw = message.toString("latin1");
  const [head = "", ...rest] = raw.split("\r\n\r\n");
  const lines = head.replaceAll(/\r\n[ \t]+/g, " ").split("\r\n");
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), readWords(line.slice(colon + 1).trim())];
    }),
  );
  const body = rest.join("\r\n\r\n");
  const text = decode(body, headers.get("content-transfer-encoding") ?? "").replaceAll("\r\n", "\n");
  return { headers, text, raw };
}

/** RFC 2047: `=?UTF-8?Q?caf=C3=A9?=`, adjacent ones without the space between. */
function readWords(value: string): string {
  return value
    .replaceAll(/(\?=)\s+(=\?)/g, "$1$2")
    .replaceAll(/=\?utf-8\?([qb])\?([^?]*)\?=/gi, (_, how: string, text: string) =>
      how.toLowerCase() === "b" ? decode(text, "base64") : decode(text.replaceAll("_", " "), "quoted-printable"),
    );
}

function decode(text: string, encoding: string): string {
  if (encoding === "base64") return Buffer.from(text, "base64").toString("utf8");
  if (encoding !== "quoted-printable") return Buffer.from(text, "latin1").toString("utf8");
  const bytes = text
    .replaceAll(/=\r\n/g, "")
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1").toString("utf8");
}
