import { expect, it } from "vitest";
import { houseSettings } from "../../src/houses/settings/settings.ts";
import { tryToRead } from "../../src/pass/trial.ts";
import { houseEntry } from "../support/houses.ts";

const [settings] = houseSettings.parse(houseEntry().entry).tables;

function payload(body: string) {
  return { body: Buffer.from(body), now: "2026-11-21T04:00:12.1234560Z", path: "/rounds" };
}

it("a payload is read, whatever it says", async () => {
  if (settings === undefined) throw new Error("expected a table");
  expect(await tryToRead(settings, payload('{"rounds":[]}'))).toBeNull();
  expect(await tryToRead(settings, payload("<html>"))).toBeNull();
});

it("one that its reader fails on says so, and the next is read", async () => {
  if (settings === undefined) throw new Error("expected a table");
  const broken = { ...settings, adapter: "none" as never };
  expect(await tryToRead(broken, payload("{}"))).toMatch(/^its reader failed: /);
  expect(await tryToRead(settings, payload('{"rounds":[]}'))).toBeNull();
});
