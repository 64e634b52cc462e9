const LONGEST = 60;

/**
 * The name of the key that replaces another: its number counted up to the first that is free, so that two keys of one
 * name are never listed side by side.
 *
 * @example
 * successorName("server", []); // => "server 2"
 * successorName("server 2", ["server", "server 3"]); // => "server 4"
 */
export function successorName(name: string, taken: readonly string[]): string {
  const [, stem = name, number = "1"] = /^(.*\S)\s+(\d{1,6})$/u.exec(name) ?? [];
  for (let next = Number(number) + 1; ; next += 1) {
    const ending = ` ${next}`;
    const successor = `${[...stem]
      .slice(0, LONGEST - ending.length)
      .join("")
      .trimEnd()}${ending}`;
    if (!taken.includes(successor)) return successor;
  }
}
