import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { readForm } from "../../src/frame/body.ts";

const FILE = { field: "statement", maxBytes: 1_048_576 };

function requestOf(body: string) {
  const headers = { "content-type": "multipart/form-data; boundary=cut" };
  return Object.assign(Readable.from([Buffer.from(body)]), { headers });
}

const part = (headers: string, content: string) => `--cut\r\n${headers}\r\n\r\n${content}\r\n`;
const named = (name: string, more = "") => `content-disposition: form-data; name="${name}"${more}`;

describe("a multipart form", () => {
  it("gives its fields and the text of its file", async () => {
    const body = `${part(named("reason"), "bank day")}${part(named("statement", '; filename="a.csv"'), "a;b")}--cut--\r\n`;
    expect(await readForm(requestOf(body), FILE)).toEqual({
      reason: "bank day",
      statement: "a;b",
      statement_file: "a.csv",
    });
  });

  it.each([
    [
      "a megabyte of headers",
      `${part(`${named("reason")}\r\n${"x: y\r\n".repeat(170_000)}x: y`, "bank day")}--cut--\r\n`,
    ],
    ["many parts", `${part(named("reason"), "bank day").repeat(10_000)}--cut--\r\n`],
    ["many delimiters", "--cut".repeat(200_000)],
  ])("is refused before it is parsed if it has %s", async (_, body) => {
    await expect(readForm(requestOf(body), FILE)).rejects.toThrow("expected a form of at most 20 parts");
  });
});
