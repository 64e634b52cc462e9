import { registerHooks } from "node:module";
import type Postgres from "postgres";

/**
 * Faults of the driver (3.4.9) around a connection that ends while something waits to be written, each with its repair:
 *
 * - a buffered write meets no socket and throws where nobody can catch it, which ends the process (porsager/postgres#1066, #1154, #1208);
 * - what was buffered, and the note that its writing is under way, outlive the connection: the next one never sends a word;
 * - where the connection ended with an error, statements that were sent after it stay in line: the next connection waits for their answers;
 * - the last words of the server ("terminating connection") are taken for the answer to the first statement on the next connection;
 * - a connection that ends while it asks for the types of arrays rejects what nobody waits for, and the next one does not ask again.
 */
const REPAIRS: { broken: string; times: number; repaired: string }[] = [
  {
    broken: "const x = socket.write(chunk, fn)\n",
    times: 1,
    repaired: `if (socket === null) {
      const lost = Errors.connection('CONNECTION_CLOSED', options, socket)
      chunk = nextWriteTimer = null
      query && queryError(query, lost)
      while (sent.length) queryError(sent.shift(), lost)
      return false
    }
    const x = socket.write(chunk, fn)
`,
  },
  {
    broken: "\n    clearImmediate(nextWriteTimer)\n",
    times: 2,
    repaired: "\n    clearImmediate(nextWriteTimer)\n    chunk = nextWriteTimer = errorResponse = null\n",
  },
  {
    broken: "!hadError && (query || sent.length) && error(",
    times: 1,
    repaired: ";(query || sent.length) && error(",
  },
  {
    broken: "        return fetchArrayTypes()\n",
    times: 1,
    repaired: "        return fetchArrayTypes().catch(() => { needsTypes = true; socket && socket.destroy() })\n",
  },
  {
    broken: "    if (initial)\n      return reconnect()\n",
    times: 1,
    repaired: `    if (initial) {
      query && queryError(query, Errors.connection('CONNECTION_CLOSED', options, socket))
      query = null
      return reconnect()
    }
`,
  },
];

/** The driver, repaired as it is loaded: npm runs no scripts here, so a patch on disk would not be there after `npm ci`. */
export const postgres: typeof Postgres = await loadRepaired();

async function loadRepaired(): Promise<typeof Postgres> {
  const hooks = registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      return url.endsWith("/postgres/src/connection.js")
        ? { ...loaded, source: repair(sourceText(loaded.source)) }
        : loaded;
    },
  });
  try {
    return (await import("postgres")).default;
  } finally {
    hooks.deregister();
  }
}

function repair(source: string): string {
  return REPAIRS.reduce((text, { broken, times, repaired }) => {
    if (text.split(broken).length - 1 === times) return text.replaceAll(broken, repaired);
    throw new Error(
      "the PostgreSQL driver is another version than src/db/driver.ts repairs: see whether it still has to",
    );
  }, source);
}

function sourceText(source: string | ArrayBuffer | NodeJS.TypedArray | undefined): string {
  return typeof source === "string" ? source : new TextDecoder().decode(source);
}
