import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { roundhouse } from "./world.ts";

/** Stands where PostgreSQL and Redis would, and counts who comes. */
let connections = 0;
const server = createServer((socket) => {
  connections += 1;
  socket.destroy();
});
let env: Record<string, string>;

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  env = {
    DATABASE_URL: `postgres://roundhouse:secret@127.0.0.1:${port}/roundhouse`,
    REDIS_URL: `redis://127.0.0.1:${port}`,
  };
});

afterAll(() => void server.close());

/** What was said of each wrong usage. */
const said: string[] = [];
const ROOT = join(import.meta.dirname, "../..");

const TABLE = ["--table", "acme/crash/global"];
const WHY = ["--reason", "because"];

describe("wrong usage ends with 2 and names the argument, before any server is asked", () => {
  it.each<[string[], string]>([
    [["table", "repair", "acme", ...WHY], "house/game/market"],
    [["table", "reset-newest", "acme/crash/global", ...WHY, "--to", "-1"], "--to <number>"],
    [["accuracy", "--table", "acme/crash"], "--table"],
    [["accuracy", "--table", "acme/crash/global", "--house", "acme"], "--house"],
    [["audit", "--table", "Acme/crash/global"], "--table"],
    [["verify", "--table", "acme"], "--table"],
    [["verify", "--checkpoint", "/nowhere/kept.txt"], "there is no such file"],
    [["verify", ...TABLE, "--table", "acme/dice/eu"], "expected --table once, found it again: acme/dice/eu"],
    [["payload", "list", "--limit", "5", "--limit=7"], "expected --limit once"],
    [["verify", "rounds", "--table", "acme"], "--table"],
    [["calibrate", "--table", "acme"], "--table"],
    [["calibrate", ...TABLE, "--params", "/nowhere/slow.yaml"], "there is no such file"],
    [["calibrate", ...TABLE, "--resume", "x"], "--resume"],
    [["calibrate", ...TABLE, ...TABLE], "is given twice"],
    [["calibration", "show", "twelve"], "'id'"],
    [["calibration", "list", "--limit", "0"], "--limit"],
    [["conflict", "list", "--house", "a b"], "--house"],
    [["conflict", "decide", "7", "--take", "both", ...WHY], "--take"],
    [["export", "rounds", "--table", "acme"], "--table"],
    [["export", "rounds", ...TABLE, "--format", "xml"], "--format"],
    [["export", "proof", "nonsense"], "'forecast_id'"],
    [["gap", "close", "x", ...WHY], "'id'"],
    [["gap", "list", ...TABLE, "--house", "acme"], "--house"],
    [["house", "pause", "a/b", ...WHY], "'id'"],
    [["house", "pause", "acme", "--reason", " "], "--reason"],
    [["import", ...TABLE, "--file", "/nowhere/rounds.csv"], "there is no such file"],
    [["import", ...TABLE, "--file", "/tmp"], "found a folder"],
    [["import", ...TABLE, "--file", import.meta.filename, "--map", "/nowhere/map.yaml"], "there is no such file"],
    [["import", ...TABLE, "--file", import.meta.filename, "--round-id", "a", "--row-numbers"], "row_numbers"],
    [["key", "create", "--account", "ann", "--plan", "Pro"], "--account"],
    [["account", "create", "ann"], "'email'"],
    [["account", "show", "ann"], "'email'"],
    [["account", "list", "--state", "odd"], "--state"],
    [["log", "declare", "--reason", ""], "--reason"],
    [["notice", "write", "hello", ...WHY], "--house or --table"],
    [["notice", "write", "x".repeat(301), ...TABLE, ...WHY], "<text>"],
    [["notice", "end", "--table", "x", ...WHY], "--table"],
    [["ops-user", "create", "ann", "--role", "admin"], "'email'"],
    [
      ["account", "create", "ann@example.com\u200b"],
      "expected an address of visible ASCII characters, found U+200B; if it was pasted",
    ],
    [["account", "create", "j\u00fcrgen@example.com"], "found U+00FC."],
    [["account", "create", "ann@example"], "expected an e-mail address"],
    [["ops-user", "create", "\u202emoc.elpmaxe@nna", "--role", "admin"], "'email'"],
    [["ops-user", "create", "ann.b@example", "--role", "admin"], "'email'"],
    [["ops-user", "disable", "ann"], "'email'"],
    [["payload", "show", "acme", "2026-11-21T04:00:12Z"], "'table'"],
    [["payload", "show", "acme/crash/global", "2026-02-30T00:00:00Z"], "as `payload list` shows it"],
    [["payload", "list", "--from", "soon"], "--from"],
    [["payload", "list", "--from", "999999d"], "--from"],
    [["payload", "reread", "--house", "acme", "--from", "6h", "--after", "2026-99-99T1Z~1"], "--after"],
    [["payload", "reread", "--house", "acme", "--table", "other/crash/global", "--from", "6h"], "--table"],
    [["plan", "set", "Pro"], "at least one thing to change"],
    [["quarantine", "show", "x"], "'id'"],
    [["queue", "pause", "backfil-gap", ...WHY], "'queue'"],
    [["queue", "discard", "backfill-gap", ...WHY], "--yes"],
    [["queue", "pause", "backfill-gap", ...WHY, "--for", "ever"], "--for"],
    [["restore", "--from", "/nowhere/today.sql.gz"], "there is no such file"],
    [["backup", "--to", import.meta.filename], "is there already"],
    [["round", "revise", ...TABLE, "--round", "1", "--to", "much", ...WHY], "--to"],
    [["witness", "--name", "w", "--folder", "f", "--log", "nonsense"], "--log"],
    [["witness", "--name", "w", "--folder", "f", "--log", "x", "--port", "many"], "--"],
  ])("%j", async (args, named) => {
    const [plain, json] = await Promise.all([roundhouse(args, { env }), roundhouse([...args, "--json"], { env })]);
    expect({ code: plain.code, stdout: plain.stdout }).toEqual({ code: 2, stdout: "" });
    expect(plain.stderr).toContain(named);
    said.push(`$ roundhouse ${args.join(" ")}\n${plain.stderr.trimEnd()}`.replaceAll(ROOT, "."));
    expect(connections).toBe(0);
    if (["witness", "proof"].some((word) => args.includes(word))) return; // have no --json
    expect({ code: json.code, stdout: json.stdout }).toEqual({ code: 2, stdout: "" });
    const { error } = JSON.parse(json.stderr) as { error: { code: string; message: string } };
    expect(error.code).toBe("usage");
    expect(JSON.stringify(error)).toContain(named);
  });

  it("is reported in the words that are recorded (`npm run record` writes them)", async () => {
    await expect(`${said.join("\n\n")}\n`).toMatchFileSnapshot("recorded/usage.txt");
  });

  it.each([["hous"], ["house", "lst"], ["house"], ["table", "list", "more"], ["house", "pause", "acme"]])(
    "is one line of JSON with --json: %j %j %j",
    async (...words) => {
      const { code, stderr } = await roundhouse([...words.filter((word) => word !== undefined), "--json"], { env });
      expect(code).toBe(2);
      expect(JSON.parse(stderr)).toMatchObject({ error: { code: "usage", problems: [] } });
    },
  );

  it("prints a failure as JSON too", async () => {
    const { code, stdout, stderr } = await roundhouse(["table", "list", "--json"], { env });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: "failed" } });
    expect(stderr).not.toContain("secret");
  });
});
