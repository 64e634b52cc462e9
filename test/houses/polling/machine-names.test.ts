import type { LookupAddress } from "node:dns";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { resolveByMachine } from "../../../src/houses/polling/machine-names.ts";

const HERE: LookupAddress[] = [{ address: "127.0.0.1", family: 4 }];

/** A resolver that responds on request, and the names that were looked up. */
function slowResolver() {
  const asked: string[] = [];
  const callbacks = new Map<string, (error: Error | null) => void>();
  const names = resolveByMachine((hostname, _, callback) => {
    asked.push(hostname);
    callbacks.set(hostname, (error) => callback(error, error === null ? HERE : []));
  });
  const ask = (hostname: string) => promisify(names)(hostname, { all: true });
  return { asked, ask, respond: (hostname: string, error: Error | null = null) => callbacks.get(hostname)?.(error) };
}

describe("names that the machine resolves", () => {
  it("are looked up once for all who ask at the same time, and again afterwards", async () => {
    const { asked, ask, respond } = slowResolver();
    const all = [ask("late.example"), ask("late.example"), ask("late.example")];
    await expect.poll(() => asked).toEqual(["late.example"]);
    respond("late.example");
    expect(await Promise.all(all)).toEqual([HERE, HERE, HERE]);
    const again = ask("late.example");
    await expect.poll(() => asked).toHaveLength(2);
    respond("late.example");
    expect(await again).toEqual(HERE);
  });

  it("are looked up two at a time, so that late ones leave threads to everything else", async () => {
    const { asked, ask, respond } = slowResolver();
    const all = ["one.example", "two.example", "three.example"].map(ask);
    await expect.poll(() => asked).toEqual(["one.example", "two.example"]);
    respond("one.example");
    await expect.poll(() => asked).toHaveLength(3);
    respond("two.example");
    respond("three.example");
    expect(await Promise.all(all)).toEqual([HERE, HERE, HERE]);
  });

  it("fail for all who asked, and are tried again by the next", async () => {
    const { ask, respond, asked } = slowResolver();
    const all = [ask("gone.example"), ask("gone.example")].map((one) => one.catch(String));
    await expect.poll(() => asked).toHaveLength(1);
    respond("gone.example", new Error("no such name"));
    expect(await Promise.all(all)).toEqual(["Error: no such name", "Error: no such name"]);
    const again = ask("gone.example");
    await expect.poll(() => asked).toHaveLength(2);
    respond("gone.example");
    expect(await again).toEqual(HERE);
  });
});
