import { createHash } from "node:crypto";

/** Statements that are prepared by name; a program has some 800, and each connection keeps a plan of those it ran. */
const NAMED_STATEMENTS = 2_000;

/** Names for prepared statements, shared by the connections of a pool. */
export interface StatementNames {
  /** The name of a statement; undefined when there are too many, and then it is prepared anonymously each time. */
  of(text: string): string | undefined;
  /** Gives every statement another name, so that each connection prepares it again. */
  renew(): void;
}

/** Makes names that follow from the statements' text. */
export function createStatementNames(): StatementNames {
  let generation = 0;
  const names = new Map<string, string>();
  return {
    of(text) {
      const known = names.get(text);
      if (known !== undefined) return known;
      if (names.size >= NAMED_STATEMENTS) return undefined;
      const name = `s${generation}_${createHash("sha256").update(text).digest("hex").slice(0, 24)}`;
      names.set(text, name);
      return name;
    },
    renew() {
      generation += 1;
      names.clear();
    },
  };
}
