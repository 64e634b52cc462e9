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
    const all = Promise.all([1, 2, 3, 50, 4, 7].map(add));
    for (let n = 0; n < 5; n++) await letGo();
    await all;
    expect(batches).toEqual([[1, 2], [3], [50], [4], [7]]);
  });

  test("fails for none but the one that fails alone", async () => {
    const { batches, add, letGo } = desk({ items: 10 }, (items) => items.includes(2) && new Error("2 is bad"));
    const all = Promise.allSettled([1, 2, 3].map(add));
    for (let n = 0; n < 4; n++) await letGo();
    expect((await all).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(batches).toEqual([[1, 2, 3], [1], [2], [3]]);
  });

  test("fails at once where the database is out of reach", async () => {
    const lost = Object.assign(new Error("gone"), { code: "CONNECTION_CLOSED" });
    const { batches, add, letGo } = desk({ items: 10 }, () => lost);
    const all = Promise.allSettled([1, 2].map(add));
    await letGo();
    expect((await all).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(batches).toEqual([[1, 2]]);
  });

  test("leaves out what would have to wait, which is done by itself while the next batch goes on", async () => {
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
    expect(batches).toEqual([[1, 2], [3]]);
    gate.resolve("alone");
    expect(await second).toBe("alone 2");
  });

  test("fails where something is left out and nobody does it", async () => {
    const add = together<number, string>(async (items) => Promise.resolve(items.map(() => APART)), { items: 10 });
    await expect(add(1)).rejects.toThrow("nothing does it by itself");
  });
});
