import { registerHooks } from "node:module";
import type Postgres from "postgres";

/**
 * Faults of the driver (3.4.9) around a connection that ends while something waits to be written, each with its repair:
 *
 * - a buffered write meets no socket and throws where nobody can catch it, which ends the process (porsager/postgres#1066, #1154, #1208);
 * - what was buffered, and the note that its writing is under way, outlive the connection: the next one never sends a word;
 * - where the connection ended with an error, statements that were sent after it stay in line: the next connection waits for their answers;
 * - the last words of the server ("terminating connection") are taken for the answer to the first statement on the next connection;
 * - a connection on which reading paused while the last rows of a `copy … to stdout` came never reads again, and all that is asked on it waits for good;
 * - a `copy … to stdout` that is not read to its end leaves its connection waiting, and the server with its locks: it costs the connection now;
 * - a connection that ends while it asks for the types of arrays rejects what nobody waits for, and the next one does not ask again.
 *
 * Where statements are to be sent one at a time (`max_pipeline: 0`), no transaction can begin: it is never told of its connection.
 *
 * And around COPY from this side, where rounds and imported rows go:
 *
 * - what the server refuses after the last row was sent never reaches whoever waits for the end, and the transaction stays open (porsager/postgres#1173);
 * - a COPY that ended well is cancelled once more, which a server ignores and a pooler may count;
 * - two short writes in a row wait 40 ms for the first to be acknowledged, and each COPY has such a pair at its end.
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
    broken: "    stream && stream.push(null)\n    stream = null\n",
    times: 1,
    repaired: "    stream && stream.push(null)\n    stream = null\n    socket.resume()\n",
  },
  {
    broken: "        return fetchArrayTypes()\n",
    times: 1,
    repaired: "        return fetchArrayTypes().catch(() => { needsTypes = true; socket && socket.destroy() })\n",
  },
  {
    broken: "stream && (stream.destroy(err), stream = null)\n",
    times: 1,
    repaired: `if (stream) {
      const failed = stream
      stream = null
      failed.destroy(err)
    }
    final && (final(err), final = null)
`,
  },
  {
    broken: `    stream = new Stream.Readable({
      read() { socket.resume() }
    })
`,
    times: 1,
    repaired: `    const mine = stream = new Stream.Readable({
      read() { socket.resume() },
      destroy(error, callback) {
        callback(error)
        if (stream !== mine) return
        stream = null
        socket && socket.destroy()
      }
    })
`,
  },
  {
    broken: `        && sent.length < max_pipeline
        && (!q.options.onexecute || q.options.onexecute(connection))
`,
    times: 1,
    repaired: `        && (q.options.onexecute ? q.options.onexecute(connection) : sent.length < max_pipeline)
`,
  },
  {
    broken: "socket.write(b().f().str(error + b.N).end())\n",
    times: 2,
    repaired: "error && socket && socket.write(b().f().str(error + b.N).end())\n",
  },
  {
    broken: "      keep_alive && socket.setKeepAlive ",
    times: 1,
    repaired: `      socket.setNoDelay && socket.setNoDelay(true)
      keep_alive && socket.setKeepAlive `,
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
