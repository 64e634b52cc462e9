import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import housekeep from "../../jobs/housekeep.ts";
import sendMail from "../../jobs/send-mail.ts";
import { closeAlert, openAlert, syncAlerts } from "../../src/alerts/store.ts";
import { checkMail } from "../../src/cli/doctor/mail.ts";
import { printMails } from "../../src/cli/run/print-mails.ts";
import { openMailServer } from "../../src/mail/deliver.ts";
import { letter } from "../../src/mail/letter.ts";
import { retryMails } from "../../src/mail/list-store.ts";
import { queueMail, takeMail } from "../../src/mail/outbox-store.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { startMailServer, type TestMailServer } from "../support/mail-server.ts";

const { sql } = await openTestDatabase({ max: 4 });
let server: TestMailServer;
beforeEach(async () => {
  await sql`truncate mails, mail_failures, alerts, alert_mails`;
  server = await startMailServer();
});
afterEach(() => server.close());

const write = (recipient: string, subject = "Hello", paragraphs = ["Some words."]) =>
  sql.begin((tx) => queueMail(tx, { ...letter("test", subject, paragraphs), recipient }));

async function send(env: Record<string, string> = {}, signal?: AbortSignal) {
  const { context, lines } = testContext(sql, {
    env: { SMTP_URL: server.url, PUBLIC_URL: "https://rounds.example", ...env },
    ...(signal && { signal }),
  });
  const isAsked = ((await sendMail.sweep?.(context)) ?? []).length > 0;
  return { isAsked, counts: await sendMail.run({}, context), lines };
}

/** Lets the time of the next try come. */
const wait = () =>
  sql.begin(async (tx) => {
    await tx`update mails set next_try_at = clock_timestamp() where sent_at is null and given_up_at is null`;
    await tx`update mail_failures set next_try_at = clock_timestamp()`;
  });

interface Row {
  state: string;
  attempts: number;
  body: string | null;
  error: string | null;
  /** Minutes until the next try, rounded. */
  wait: number;
}
const rows = () => sql<Row[]>`
  select
    case when sent_at is not null then 'sent' when is_refused then 'refused'
      when given_up_at is not null then 'late' else 'waiting' end as state,
    attempts,
    body,
    last_error as error,
    round(extract(epoch from next_try_at - clock_timestamp()) / 60)::integer as wait
  from mails
  order by id`;
const states = async () => (await rows()).map(({ state }) => state);
const openAlerts = async () =>
  (await sql<{ kind: string }[]>`select kind from alerts where closed_at is null`).map(({ kind }) => kind);

/** Deletes what is older than it is kept. */
const retain = () => housekeep.run({ kind: "retention" }, testContext(sql).context);

describe("a mail", () => {
  it("is sent once, with everything that belongs into it, and its text is forgotten", async () => {
    const link = `https://rounds.example/verify?token=${"x".repeat(150)}`;
    await write("ann@example.com", "Grüße aus São Paulo ♥", [`Öffne das:\n${link}`]);
    await Promise.all([1, 2].map(() => write("ben@example.com")));
    const { isAsked, counts } = await send({ MAIL_FROM: "Zoë <hello@example.com>" });
    expect([isAsked, counts]).toEqual([true, { alerts: 0, sent: 3, putOff: 0, refused: 0, givenUp: 0 }]);
    expect(server.connections).toBe(1);
    const [first] = server.received;
    expect(first).toMatchObject({ from: "hello@example.com", to: ["ann@example.com"] });
    const header = (name: string) => first?.headers.get(name);
    expect(header("subject")).toBe("Grüße aus São Paulo ♥");
    expect(header("from")).toBe("Zoë <hello@example.com>");
    expect(header("to")).toBe("ann@example.com");
    expect(header("auto-submitted")).toBe("auto-generated");
    expect(header("content-type")).toMatch(/^text\/plain; charset=utf-8/);
    expect(header("message-id")).toMatch(/^<[0-9a-f-]{36}@example\.com>$/);
    expect(first?.text).toContain(`Öffne das:\n${link}\n`);
    expect(first?.text.trimEnd().endsWith("no outcome is guaranteed. 18+.")).toBe(true);
    expect(await rows()).toMatchObject([1, 2, 3].map(() => ({ state: "sent", attempts: 1, body: null, error: null })));
    expect((await send()).isAsked).toBe(false);
    expect(server.received).toHaveLength(3);
  });

  it("about one event is written once, and only if the event happened", async () => {
    const mail = { ...letter("bought", "Thanks", ["You bought it."]), recipient: "ann@example.com", dedupKey: "buy 1" };
    const lost = sql.begin(async (tx) => {
      await queueMail(tx, mail);
      throw new Error("it did not happen");
    });
    await expect(lost).rejects.toThrow("it did not happen");
    await queueMail(sql, mail);
    await queueMail(sql, { ...mail, subject: "Thanks again" });
    expect(await sql`select subject from mails`).toEqual([{ subject: "Thanks" }]);
  });

  it("cannot carry another header, in whatever field it is put", async () => {
    for (const recipient of ["a@b.c\r\nBcc: d@e.f", "a@b.c, d@e.f", "A <a@b.c>", "a@b.c\nd", "nobody", "a@b@c"]) {
      await expect(write(recipient), recipient).rejects.toThrow(/recipient_looks_like_an_address/);
    }
    const raw = { kind: "test", recipient: "a@b.c", subject: "Hi\r\nBcc: d@e.f", body: "x" };
    await expect(queueMail(sql, raw)).rejects.toThrow(/subject_is_one_line/);
    await write("ann@example.com", "Hi\r\nBcc: all@example.com", ["x\r\n.\r\nMAIL FROM:<evil@example.com>"]);
    await send();
    expect(server.received).toHaveLength(1);
    expect(server.received[0]?.to).toEqual(["ann@example.com"]);
    expect(server.received[0]?.headers.has("bcc")).toBe(false);
    expect(server.received[0]?.headers.get("subject")).toBe("Hi Bcc: all@example.com");
  });

  it("is taken by one of two workers", async () => {
    for (let n = 0; n < 30; n++) await write(`n${n}@example.com`);
    const [one, two] = await Promise.all([send(), send()]);
    expect((one.counts["sent"] ?? 0) + (two.counts["sent"] ?? 0)).toBe(30);
    expect(new Set(server.received.flatMap(({ to }) => to)).size).toBe(30);
    expect(server.received).toHaveLength(30);
  });

  it("that a worker took and left behind is sent by another, under the same id", async () => {
    await write("ann@example.com");
    const taken = await takeMail(sql);
    expect((await send()).counts["sent"]).toBe(0);
    await wait();
    await send();
    expect(server.received[0]?.headers.get("message-id")).toBe(`<${taken?.messageId}@rounds.example>`);
    expect(await rows()).toMatchObject([{ state: "sent", attempts: 2 }]);
  });
});

describe("a refusal", () => {
  it("for now is tried again later and later, and holds no other mail up", async () => {
    server.replyToRecipient = (address) => (address.startsWith("full") ? 452 : null);
    await write("full@example.com");
    await write("ann@example.com");
    expect((await send()).counts).toMatchObject({ sent: 1, putOff: 1 });
    expect(await rows()).toMatchObject([{ state: "waiting", wait: 1, attempts: 1 }, { state: "sent" }]);
    for (const minutes of [2, 4, 8, 16, 32, 60, 60]) {
      expect((await send()).isAsked).toBe(false);
      await wait();
      await send();
      expect((await rows())[0]).toMatchObject({ state: "waiting", wait: minutes });
    }
    server.replyToRecipient = () => null;
    await wait();
    await send();
    expect(await states()).toEqual(["sent", "sent"]);
    expect(await openAlerts()).toEqual([]);
  });

  it("permanently ends it immediately with the reason, and keeps its text for another try", async () => {
    server.replyToRecipient = (address) => (address.startsWith("gone") ? 550 : null);
    await write("gone@example.com");
    await write("ann@example.com");
    const { counts, lines } = await send();
    expect(counts).toMatchObject({ sent: 1, refused: 1 });
    const [gone] = await rows();
    expect(gone).toMatchObject({ state: "refused" });
    expect(gone?.error).toContain("550");
    expect(gone?.body).toContain("Some words.");
    expect(JSON.stringify(lines)).toContain("550");
    expect(JSON.stringify(lines)).not.toContain("gone@");
    expect(await openAlerts()).toEqual([]);
  });

  it("that lasts for three days gives it up, with an alert until it is old news", async () => {
    server.replyToRecipient = () => 450;
    await write("full@example.com");
    await send();
    await wait();
    await sql`update mails set asked_at = clock_timestamp() - interval '3 days'`;
    await write("ann@example.com");
    expect((await send()).counts).toMatchObject({ givenUp: 1 });
    expect(await rows()).toMatchObject([{ state: "late" }, { state: "waiting" }]);
    expect(await openAlerts()).toEqual(["mail_given_up"]);
    const [old] = await sql<{ id: bigint }[]>`
      update mails
      set given_up_at = clock_timestamp() - interval '33 days', created_at = clock_timestamp() - interval '40 days'
      where given_up_at is not null
      returning id`;
    await sql`
      update mails
      set given_up_at = clock_timestamp(), last_error = '450'
      where id <> ${old?.id ?? 0n}`;
    await retain();
    expect(await rows()).toMatchObject([{ state: "late", error: "450" }]);
    expect(await openAlerts()).toEqual(["mail_given_up"]);
    await sql`update mails set given_up_at = clock_timestamp() - interval '2 days'`;
    await retain();
    expect(await openAlerts()).toEqual([]);
  });

  it("that is given up and retried is not deleted by a retention that does not see the retry yet", async () => {
    await write("back@example.com");
    const [old] = await sql<{ id: bigint }[]>`
      update mails
      set
        given_up_at = clock_timestamp() - interval '33 days',
        created_at = clock_timestamp() - interval '40 days',
        last_error = '450'
      returning id`;
    let retained: ReturnType<typeof retain> | undefined;
    await sql.begin(async (tx) => {
      await retryMails(tx, [old!.id], 1);
      retained = retain();
      await lockWaits(sql, 1);
    });
    await retained;
    expect(await states()).toEqual(["waiting"]);
  });
});

describe("a failing mail server", () => {
  it("that is unreachable is tried by one mail after a minute and more, and all are sent once it is back", async () => {
    const { port } = server;
    await server.close();
    for (const name of ["ann", "ben", "cat"]) await write(`${name}@example.com`);
    const { counts, lines } = await send();
    expect(counts).toMatchObject({ sent: 0, putOff: 1 });
    expect(await states()).toEqual(["waiting", "waiting", "waiting"]);
    expect(JSON.stringify(lines)).toContain("ECONNREFUSED");
    expect((await send()).isAsked).toBe(false);
    expect((await send()).counts).toMatchObject({ sent: 0, putOff: 0 });
    await sql`update mail_failures set since = since - interval '20 minutes'`;
    await wait();
    await send();
    expect(await openAlerts()).toEqual(["mail_server"]);
    server = await startMailServer({ port });
    await wait();
    expect((await send()).counts).toMatchObject({ sent: 3 });
    expect(await openAlerts()).toEqual([]);
    expect(await sql`select from mail_failures`).toHaveLength(0);
  });

  it("is not known to work again by a mail that the worker cannot read and never sent", async () => {
    await write("ann@example.com");
    await sql`update mails set sealed = 'of another secret'`;
    await sql`
      insert into mail_failures (since, next_try_at, reason)
      values (clock_timestamp() - interval '20 minutes', clock_timestamp(), 'ECONNREFUSED')`;
    expect((await send()).counts).toMatchObject({ sent: 0, putOff: 1 });
    expect((await rows())[0]?.error).toContain("AUTH_SECRET");
    expect(await sql`select from mail_failures`).toHaveLength(1);
    await write("ben@example.com");
    await sql`update mails set next_try_at = clock_timestamp()`;
    expect((await send()).counts).toMatchObject({ sent: 1, putOff: 1 });
    expect(await sql`select from mail_failures`).toHaveLength(0);
  });

  it("with an unknown certificate gets no mail, unless its URL permits it", async () => {
    for (const tls of ["always", "starttls"] as const) {
      await server.close();
      server = await startMailServer({ tls });
      await write("ann@example.com");
      await wait();
      await send();
      expect(server.received).toEqual([]);
      expect((await rows()).at(-1)).toMatchObject({
        state: "waiting",
        error: expect.stringMatching(/certificate/) as string,
      });
      await wait();
      await send({ SMTP_URL: `${server.url}?tls.rejectUnauthorized=false` });
      expect(server.received.map(({ to }) => to)).toEqual([["ann@example.com"]]);
    }
  });

  it("that knows us not is asked no more often, and its password is in no line", async () => {
    await server.close();
    server = await startMailServer({ password: "hunter2-and-more" });
    const url = (password: string) => server.url.replace("//", `//me:${password}@`);
    await write("ann@example.com");
    const { lines } = await send({ SMTP_URL: url("wrong-password") });
    expect((await send({ SMTP_URL: url("wrong-password") })).isAsked).toBe(false);
    expect(await rows()).toMatchObject([{ state: "waiting", error: expect.stringContaining("535") as string }]);
    expect(JSON.stringify(lines)).not.toContain("wrong-password");
    expect(JSON.stringify(await checkMail({ SMTP_URL: url("wrong-password") }))).toMatch(/"fail".*535/);
    expect(JSON.stringify(await checkMail({ SMTP_URL: url("wrong-password") }))).not.toContain("wrong-password");
    expect(await checkMail({ SMTP_URL: url("hunter2-and-more") })).toMatchObject({ status: "ok", advice: null });
    await wait();
    await send({ SMTP_URL: url("hunter2-and-more") });
    expect(await states()).toEqual(["sent"]);
  });

  it("that takes no mail from our address, or closes on us, loses none of them", async () => {
    await write("ann@example.com");
    server.replyToSender = () => 553;
    await send();
    expect(await rows()).toMatchObject([{ state: "waiting", error: expect.stringContaining("553") as string }]);
    expect((await send()).isAsked).toBe(false);
    server.replyToSender = () => null;
    for (const code of [421, 503]) {
      server.replyToRecipient = () => code;
      await wait();
      await send();
      expect(await sql`select from mail_failures`).toHaveLength(1);
    }
    server.replyToRecipient = () => null;
    await wait();
    await send();
    expect(await states()).toEqual(["sent"]);
  });

  it("that accepts and never responds is left when the worker stops, and the mail is tried again", async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket)).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    await write("ann@example.com");
    const stop = new AbortController();
    const sending = send({ SMTP_URL: `smtp://127.0.0.1:${port}` }, stop.signal);
    await eventually(() => sockets.length > 0);
    stop.abort();
    expect((await sending).counts).toMatchObject({ sent: 0, putOff: 1 });
    expect(await rows()).toMatchObject([{ state: "waiting", wait: 1 }]);
    expect(await sql`select from mail_failures`).toHaveLength(0);
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  it("that never responds, or never ends its response, delays a mail for a limited time", async () => {
    const answers = [
      () => undefined,
      (socket: Socket) => {
        const drip = setInterval(() => socket.write("220-welcome\r\n"), 5);
        socket.on("close", () => clearInterval(drip)).on("error", () => undefined);
      },
    ];
    const mail = { recipient: "ann@example.com", subject: "Hello", body: "x", messageId: "1" };
    for (const answer of answers) {
      const odd = createServer(answer).listen(0, "127.0.0.1");
      await once(odd, "listening");
      const { port } = odd.address() as AddressInfo;
      const from = { name: "Us", address: "us@example.com" };
      const way = openMailServer(`smtp://127.0.0.1:${port}`, from, { withinMs: 100 });
      const delivery = await way.deliver(mail, new AbortController().signal);
      expect(delivery).toEqual({ outcome: "server-failure", reason: "the mail server did not take it within 0.1 s" });
      way.close();
      odd.close();
    }
  });

  it("that disconnects at one mail is tried with another one first, so that one mail cannot stop all", async () => {
    server.replyToRecipient = (address) => (address.startsWith("slow") ? 421 : null);
    for (const name of ["slow", "ann"]) await write(`${name}@example.com`);
    await send();
    await write("ben@example.com");
    await sql`update mails set next_try_at = next_try_at - interval '1 hour'`;
    await sql`update mail_failures set next_try_at = next_try_at - interval '1 hour'`;
    await send();
    expect(server.received.flatMap(({ to }) => to)).toEqual(["ann@example.com", "ben@example.com"]);
    expect(await states()).toEqual(["waiting", "sent", "sent"]);
  });

  it("that refuses every mail is an alert until it accepts one", async () => {
    server.replyToRecipient = (address) => (address.startsWith("ann") ? null : 554);
    for (let n = 1; n <= 4; n++) await write(`n${n}@elsewhere.example`);
    await send();
    expect(await openAlerts()).toEqual([]);
    await write("n5@elsewhere.example");
    await send();
    expect(await openAlerts()).toEqual(["mail_refused"]);
    const [{ text }] = (await sql`select text from alerts`) as [{ text: string }];
    expect(text).toContain("refused the last 5 mails");
    await write("n6@elsewhere.example");
    await write("ann@example.com");
    await send();
    expect(await openAlerts()).toEqual([]);
  });

  it("that puts all mails off is an alert after 15 minutes, until it takes one", async () => {
    server.replyToRecipient = (address) => (address.startsWith("ben") ? null : 454);
    const writtenEarlier = async (names: string[]) => {
      for (const name of names) await write(`${name}@example.com`);
      await sql`update mails set asked_at = asked_at - interval '16 minutes' where sent_at is null`;
    };
    await writtenEarlier(["full", "full", "full", "ann"]);
    await send();
    expect(await openAlerts(), "two full mailboxes").toEqual([]);
    await writtenEarlier(["cat"]);
    await wait();
    await send();
    expect(await openAlerts()).toEqual(["mail_late"]);
    const [{ text }] = (await sql`select text from alerts`) as [{ text: string }];
    expect(text).toMatch(/^5 mails could not be sent within 15 minutes: .*454/);
    expect(text).not.toContain("@");
    await write("ben@example.com");
    await send();
    expect(await openAlerts()).toEqual([]);
    await wait();
    await send();
    expect(await openAlerts(), "they were written before the one that it took").toEqual([]);
    await sql`update mails set sent_at = sent_at - interval '17 minutes' where sent_at is not null`;
    await writtenEarlier(["dan", "eve", "fay"]);
    await sql`insert into mails (kind, recipient, subject, sent_at) values ('alerts', 'ops@example.com', 'an alert', now())`;
    await wait();
    await send();
    expect(await openAlerts(), "a mail about alerts says nothing of others").toEqual(["mail_late"]);
  });

  it("is no cause of the alert about links that are encrypted with another AUTH_SECRET", async () => {
    await write("ann@example.com");
    await sql`update mails set sealed = 'of another secret'`;
    await send();
    expect(await openAlerts()).toEqual([]);
    await sql`update mails set asked_at = asked_at - interval '16 minutes'`;
    await wait();
    await write("ben@example.com");
    expect((await send()).counts).toMatchObject({ sent: 1, putOff: 1 });
    expect(await sql`select kind, subject from alerts where closed_at is null`).toEqual([
      { kind: "mail_late", subject: "AUTH_SECRET" },
    ]);
    await sql`update mails set sealed = null`;
    await wait();
    await send();
    expect(await openAlerts()).toEqual([]);
  });

  it("is checked by the doctor if the instance is public, and its absence is fine on one's own machine", async () => {
    expect(await checkMail({ PUBLIC_URL: "https://rounds.example" })).toMatchObject({ status: "warn" });
    expect(await checkMail({ PUBLIC_URL: "http://127.0.0.1:3000" })).toMatchObject({ status: "ok" });
    await server.close();
    expect(await checkMail({ SMTP_URL: server.url })).toMatchObject({ status: "fail" });
    server = await startMailServer();
  });
});

describe("without a mail server", () => {
  it("mails wait, and each new one is printed once with its link", async () => {
    await write("ann@example.com", "Confirm your address", ["Open this:\nhttp://127.0.0.1:3000/verify?token=abc"]);
    const { context, lines } = testContext(sql);
    expect(await sendMail.sweep?.(context)).toEqual([]);
    expect(await sendMail.run({}, context)).toEqual({ alerts: 0 });
    const said: string[] = [];
    const stop = new AbortController();
    const printing = [1, 2].map(() =>
      printMails(sql, { say: (text) => said.push(text), log: context.log, signal: stop.signal, keys: [] }),
    );
    await eventually(() => said.length > 0);
    await write("ben@example.com");
    await eventually(() => said.length > 1);
    stop.abort();
    await Promise.all(printing);
    expect(said).toHaveLength(2);
    expect(said[0]).toContain("ann@example.com");
    expect(said[0]).toContain("Confirm your address");
    expect(said[0]).toContain("http://127.0.0.1:3000/verify?token=abc");
    expect(await states()).toEqual(["waiting", "waiting"]);
    expect(lines).toEqual([]);
  });

  it("mails are deleted 32 days after they were last requested", async () => {
    for (const name of ["ann", "ben", "cat"]) await write(`${name}@example.com`);
    const ago = (recipient: string, days: number, askedDays: number) => sql`
      update mails
      set
        created_at = clock_timestamp() - ${days} * interval '1 day',
        asked_at = clock_timestamp() - ${askedDays} * interval '1 day'
      where recipient = ${recipient}`;
    await ago("ann@example.com", 33, 33);
    await ago("ben@example.com", 33, 31);
    await ago("cat@example.com", 31, 31);
    await retain();
    expect(await sql`select recipient from mails order by id`).toEqual([
      { recipient: "ben@example.com" },
      { recipient: "cat@example.com" },
    ]);
  });

  it("those that wait for more than three days are not sent unasked once there is one", async () => {
    await write("ann@example.com");
    await sql`update mails set asked_at = clock_timestamp() - interval '4 days'`;
    await write("ben@example.com");
    expect((await send()).counts).toMatchObject({ sent: 1, givenUp: 1 });
    expect(server.received.map(({ to }) => to)).toEqual([["ben@example.com"]]);
    expect(await rows()).toMatchObject([{ state: "late", error: expect.stringContaining("too old") as string }, {}]);
  });
});

describe("ALERT_EMAIL", () => {
  const env = { ALERT_EMAIL: "ops@example.com, night@example.com" };
  const disk = { kind: "disk", subject: "host:/data", text: "the disk is nearly full: make room" };
  const later = () => sql`
    update alert_mails
    set written_at = written_at - interval '1 hour', quiet = tstzrange(lower(quiet) - interval '1 hour', upper(quiet) - interval '1 hour')`;

  it("gets a mail when an alert opens and when it is over, once each", async () => {
    const { context } = testContext(sql);
    await openAlert(sql, context.log, disk);
    expect((await send(env)).counts).toMatchObject({ alerts: 1, sent: 2 });
    expect((await send(env)).isAsked).toBe(false);
    const [first] = server.received;
    expect(server.received.flatMap(({ to }) => to).toSorted()).toEqual(["night@example.com", "ops@example.com"]);
    expect(first?.headers.get("subject")).toBe("Alert: disk (host:/data)");
    expect(first?.text).toContain("the disk is nearly full: make room");
    expect(first?.text).toContain("https://rounds.example/ops");
    await later();
    expect((await send(env)).isAsked).toBe(false);
    await closeAlert(sql, context.log, disk);
    await send(env);
    expect(server.received.map(({ headers }) => headers.get("subject")).slice(2)).toEqual([
      "Over: disk (host:/data)",
      "Over: disk (host:/data)",
    ]);
    await later();
    expect((await send(env)).isAsked).toBe(false);
  });

  it("gets one mail about a storm of them, and the rest ten minutes later, however many workers write it", async () => {
    const { context } = testContext(sql);
    const houses = Array.from({ length: 20 }, (_, n) => ({ kind: "house_offline", subject: `h${n}`, text: "silent" }));
    for (const house of houses) await openAlert(sql, context.log, house);
    const toOne = { ALERT_EMAIL: "ops@example.com" };
    await Promise.all([send(toOne), send(toOne), send(toOne)]);
    await openAlert(sql, context.log, disk);
    for (const house of houses) await closeAlert(sql, context.log, house);
    await send(toOne);
    expect(server.received).toHaveLength(1);
    expect(server.received[0]?.headers.get("subject")).toBe("20 new alerts");
    await later();
    await send(toOne);
    expect(server.received.map(({ headers }) => headers.get("subject"))).toEqual([
      "20 new alerts",
      "1 new alert, 20 over",
    ]);
    expect(server.received[1]?.text).toContain("OPEN since");
  });

  it("gets all alerts of an event with many tables in one mail, which names the others of a kind by their number", async () => {
    const { context } = testContext(sql);
    const tables = Array.from({ length: 120 }, (_, n) => ({ subject: `alpha/crash/m${n}`, text: "not scored" }));
    await syncAlerts(sql, context.log, "unscored", tables);
    await openAlert(sql, context.log, disk);
    const toOne = { ALERT_EMAIL: "ops@example.com" };
    expect((await send(toOne)).counts).toMatchObject({ alerts: 121 });
    expect(server.received[0]?.headers.get("subject")).toBe("121 new alerts");
    expect(server.received[0]?.text).toContain("disk (host:/data)");
    expect(server.received[0]?.text).toContain("And 71 more: 71 of the kind unscored.");
    await later();
    expect((await send(toOne)).isAsked).toBe(false);
    await syncAlerts(sql, context.log, "unscored", tables.slice(0, 10));
    await send(toOne);
    expect(server.received[1]?.headers.get("subject")).toBe("110 over");
    expect(server.received[1]?.text).toContain("And 60 more: 60 of the kind unscored.");
  });

  it("gets alerts however long they are, and they delay no other mail", async () => {
    const { context } = testContext(sql);
    for (let n = 0; n < 50; n++) {
      await openAlert(sql, context.log, {
        kind: "odd",
        subject: `h${n} ${"x".repeat(2_000)}`,
        text: "word ".repeat(600),
      });
    }
    await write("ann@example.com");
    expect((await send({ ALERT_EMAIL: "ops@example.com" })).counts).toMatchObject({ alerts: 50, sent: 2 });
  });

  it("set today gets the open alerts, not old ones; unset, no mail is sent", async () => {
    const { context } = testContext(sql);
    await openAlert(sql, context.log, { ...disk, subject: "old" });
    await closeAlert(sql, context.log, { ...disk, subject: "old" });
    await sql`update alerts set opened_at = opened_at - interval '3 days', closed_at = closed_at - interval '2 days'`;
    await openAlert(sql, context.log, disk);
    await sql`update alerts set opened_at = opened_at - interval '9 days' where closed_at is null`;
    expect((await send()).counts).toMatchObject({ alerts: 0 });
    expect(await rows()).toEqual([]);
    await send({ ALERT_EMAIL: "ops@example.com" });
    expect(server.received.map(({ headers }) => headers.get("subject"))).toEqual(["Alert: disk (host:/data)"]);
  });
});
