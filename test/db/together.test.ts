import { describe, expect, test } from "vitest";
import { APART, together } from "../../src/db/together.ts";

/** Notes each batch, and works on it until it is let go on. */
function desk(limits: Parameters<typeof together<number, string>>[1], poison?: (items: readonly number[]) => unknown) {
  const batches: number[][] = [];
  const gates: (() => void)[] = [];
  const add = together<number, string>(async (items) => {
    batches.push([...items]);
    const gate = Promise.withResolvers<void>();
    gates.push(gate.resolve);
    await gate.promise;
    const trouble = poison?.(items);
    if (trouble instanceof Error) throw trouble;
    return items.map((item) => `done ${item}`);
  }, limits);
  const letGo = async () => {
    while (gates.length === 0) await new Promise((next) => setImmediate(next));
    gates.shift()?.();
  };
  return { batches, add, letGo };
}

describe("what is done together", () => {
  test("is what came while the batch before was on its way, in the order in which it came", async () => {
    const { batches, add, letGo } = desk({ items: 10 });
    const first = add(1);
    await letGo();
    expect(await first).toBe("done 1");
    const second = add(2);
    while (batches.length < 2) await new Promise((next) => setImmediate(next));
    const rest = [add(3), add(4)];
    await letGo();
    await letGo();
    expect(await Promise.all([second, ...rest])).toEqual(["done 2", "done 3", "done 4"]);
    expect(batches).toEqual([[1], [2], [3, 4]]);
  });

  test("is no more than a batch may have, and a heavy one goes alone", async () => {
    const { batches, add, letGo } = desk({ items: 2, weight: { most: 10, of: (item) => item } });
    const all = Promise.all([1, 2, 3, 50, 4, 7].map((item) => add(item)));
    for (let n = 0; n < 5; n++) await letGo();
    await all;
    expect(batches).toEqual([[1, 2], [3], [50], [4], [7]]);
  });

  test("fails for none but the one that fails alone, which halves find", async () => {
    const { batches, add, letGo } = desk({ items: 10 }, (items) => items.includes(2) && new Error("2 is bad"));
    const all = Promise.allSettled([1, 2, 3, 4, 5].map((item) => add(item)));
    for (let n = 0; n < 7; n++) await letGo();
    expect((await all).map(({ status }) => status)).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
      "fulfilled",
      "fulfilled",
    ]);
    expect(batches).toEqual([[1, 2, 3, 4, 5], [1, 2, 3], [1, 2], [1], [2], [3], [4, 5]]);
  });

  test("fails at once where the database is out of reach", async () => {
    const lost = Object.assign(new Error("gone"), { code: "CONNECTION_LOST" });
    const { batches, add, letGo } = desk({ items: 10 }, () => lost);
    const all = Promise.allSettled([1, 2].map((item) => add(item)));
    await letGo();
    expect((await all).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(batches).toEqual([[1, 2]]);
  });

  test("leaves out what would have to wait, which is done by itself after some tries while batches go on", async () => {
    const gate = Promise.withResolvers<string>();
    const batches: number[][] = [];
    const add = together<number, string>(
      async (items) => {
        batches.push([...items]);
        return Promise.resolve(items.map((item) => (item === 2 ? APART : `done ${item}`)));
      },
      { items: 10, apart: (item) => gate.promise.then((text) => `${text} ${item}`) },
    );
    const [first, second] = [add(1), add(2)];
    expect(await first).toBe("done 1");
    expect(await add(3)).toBe("done 3");
    gate.resolve("alone");
    expect(await second).toBe("alone 2");
    expect(batches.flat().filter((item) => item === 2)).toHaveLength(5);
  });

  test("does no more than two by themselves at once", async () => {
    const gates: (() => void)[] = [];
    const add = together<number, number>(async (items) => Promise.resolve(items.map(() => APART)), {
      items: 10,
      apart: (item) => new Promise((resolve) => gates.push(() => resolve(item))),
    });
    const all = Promise.all([1, 2, 3].map((item) => add(item)));
    while (gates.length < 2) await new Promise((next) => setImmediate(next));
    await new Promise((next) => setImmediate(next));
    expect(gates).toHaveLength(2);
    gates[0]?.();
    while (gates.length < 3) await new Promise((next) => setImmediate(next));
    for (const letGo of gates) letGo();
    expect(await all).toEqual([1, 2, 3]);
  });

  test("forgets who gives up while waiting, and ends what is on its way", async () => {
    const { batches, add, letGo } = desk({ items: 1 });
    const [first, second] = [new AbortController(), new AbortController()];
    const all = Promise.allSettled([add(1, first.signal), add(2, second.signal), add(3)]);
    while (batches.length < 1) await new Promise((next) => setImmediate(next));
    first.abort(new Error("too late"));
    second.abort(new Error("gave up"));
    await letGo();
    await letGo();
    expect(await all).toMatchObject([
      { status: "fulfilled", value: "done 1" },
      { status: "rejected", reason: { message: "gave up" } },
      { status: "fulfilled", value: "done 3" },
    ]);
    expect(batches).toEqual([[1], [3]]);
    await expect(add(4, AbortSignal.abort(new Error("over")))).rejects.toThrow("over");
  });

  test("is not tried again once who asked for it has given up", async () => {
    const gate = Promise.withResolvers<void>();
    let tries = 0;
    const add = together<number, string>(
      async (items) => {
        tries += 1;
        await gate.promise;
        return items.map(() => APART);
      },
      { items: 10, apart: () => Promise.resolve("never") },
    );
    const giving = new AbortController();
    const asked = add(1, giving.signal);
    while (tries === 0) await new Promise((next) => setImmediate(next));
    giving.abort(new Error("gave up"));
    gate.resolve();
    await expect(asked).rejects.toThrow("gave up");
    expect(tries).toBe(1);
  });

  test("fails where something is left out and nobody does it", async () => {
    const add = together<number, string>(async (items) => Promise.resolve(items.map(() => APART)), { items: 10 });
    await expect(add(1)).rejects.toThrow("nothing does it by itself");
  });
});
