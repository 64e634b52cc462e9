import { describe, expect, it } from "vitest";
import * as alertLetters from "../../src/alerts/letter.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { mailServerOptions } from "../../src/mail/deliver.ts";
import * as letters from "../../src/mail/letter.ts";
import { senderOf } from "../../src/mail/sender.ts";
import { listExamples, runExample } from "../support/examples.ts";

const { letter } = letters;
const NOTICE = "no outcome is guaranteed. 18+.\n";

describe("a letter", () => {
  it.each([
    ["src/mail/letter.ts", letters],
    ["src/alerts/letter.ts", alertLetters],
  ])("is as the examples of %s say", (file, module) => {
    for (const example of listExamples(file)) {
      for (const { line, actual, expected } of runExample(example, module)) expect(actual, line).toEqual(expected);
    }
  });

  it("is wrapped at 72 columns, keeps its line breaks and never cuts a link", () => {
    const link = `https://rounds.example/verify?token=${"x".repeat(120)}`;
    const words = "Somebody gave this address when signing up, most likely you, on a Saturday. ".repeat(3);
    const { body } = letter("hello", "Hello", [words, `Open this:\n${link}`, "Grüße — 世界"]);
    const lines = body.split("\n");
    expect(lines.filter((line) => line.length > 72)).toEqual([link]);
    expect(body).toContain(`\n\nOpen this:\n${link}\n\n`);
    expect(body).toContain("Grüße — 世界");
    expect(body.endsWith(NOTICE)).toBe(true);
    expect(body.replaceAll(/\s+/g, " ")).toContain("Rounds come from the house's random generator");
  });

  it("has a subject of one line and a text without control characters, whatever name was entered", () => {
    const evil = "you\r\nBcc: all@example.com\r\n\r\n<b>\u001b[31m\u2028\u202e";
    const { subject, body } = letter("hello", `Hello ${evil}`, [`Dear ${evil},`]);
    expect(subject).toBe("Hello you Bcc: all@example.com <b> [31m");
    expect(body).not.toMatch(/[^\P{Cc}\n]/u);
    expect([...letter("hello", "é".repeat(300), []).subject]).toHaveLength(200);
    expect(letter("hello", "\r\n", []).subject).toBe("(no subject)");
  });

  it("is sent from MAIL_FROM, else from the public host", () => {
    const from = (env: Record<string, string>) => senderOf(loadSettings(env));
    expect(from({ MAIL_FROM: "Rounds & Co <hello@example.com>" })).toEqual({
      name: "Rounds & Co",
      address: "hello@example.com",
    });
    expect(from({ MAIL_FROM: "hello@example.com" })).toEqual({ name: "Roundhouse", address: "hello@example.com" });
    expect(from({ PUBLIC_URL: "https://rounds.example:8443" }).address).toBe("no-reply@rounds.example");
    expect(from({ PUBLIC_URL: "http://127.0.0.1:3000" }).address).toBe("no-reply@localhost");
    expect(from({}).address).toBe("no-reply@localhost");
  });

  it("is sent with a password to another machine by TLS alone, unless the URL permits otherwise", () => {
    const mustEncrypt = (url: string) => "requireTLS" in mailServerOptions(url);
    expect(mustEncrypt("smtp://me:word@mail.example:587")).toBe(true);
    for (const url of [
      "smtp://mail.example",
      "smtps://me:word@mail.example",
      "smtp://me:word@127.0.0.1:25",
      "smtp://me:word@localhost",
      "smtp://me:word@mailpit:1025?requireTLS=false",
    ]) {
      expect(mustEncrypt(url), url).toBe(false);
    }
  });

  it("is sent by settings that are read with care, and none repeats a password", () => {
    const wrong: Record<string, string>[] = [
      { SMTP_URL: "mail.example" },
      { SMTP_URL: "http://mail.example" },
      { SMTP_URL: "smtp://" },
      { MAIL_FROM: "nobody" },
      { MAIL_FROM: "A <b@example.com>\r\nBcc: c@example.com" },
      { MAIL_FROM: "A\u0007 <b@example.com>" },
      { ALERT_EMAIL: "a@example.com;b@example.com" },
      { ALERT_EMAIL: "a@example.com b" },
    ];
    for (const env of wrong) expect(() => loadSettings(env), JSON.stringify(env)).toThrow(Object.keys(env)[0] ?? "");
    expect(() => loadSettings({ SMTP_URL: "imap://me:hunter2@mail.example" })).not.toThrow(/hunter2/);
    expect(loadSettings({ ALERT_EMAIL: "a@example.com, b@example.com,a@example.com" }).ALERT_EMAIL).toEqual([
      "a@example.com",
      "b@example.com",
    ]);
    expect(loadSettings({}).ALERT_EMAIL).toEqual([]);
  });
});
