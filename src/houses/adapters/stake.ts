import { z } from "zod";
import { adapter } from "../contract.ts";
import { describe, excerpt } from "../reading/excerpt.ts";
import { namedOptions } from "../settings/feed-options.ts";
import { readList, wire, type ListShape } from "../reading/read-list.ts";

const options = z.strictObject(namedOptions({ order: "newest_first" }));

/** Clients request 10 to 50. */
const PAGE = 50;
const PATH = "/_api/graphql";
const QUERY =
  "query CrashGameListHistory($limit: Int, $offset: Int) { crashGameList(limit: $limit, offset: $offset) { id startTime crashpoint hash { id hash } } }";
const HEADERS = { accept: "application/json", "content-type": "application/json" };

const item = z.looseObject({
  id: wire,
  crashpoint: wire,
  startTime: wire.nullish(),
  hash: z.looseObject({ hash: wire.nullish() }, { error: "expected an object with the hash" }).nullish(),
});

const shape: ListShape<z.infer<typeof item>> = {
  what: "Stake's newest crash games",
  response: z
    .looseObject({ data: z.looseObject({ crashGameList: z.array(z.unknown()) }) })
    .transform(({ data }) => data.crashGameList),
  item,
  kinds: { id: "id", crashpoint: "multiplier", startTime: "time", hash: "hash" },
  round: ({ id, crashpoint, startTime, hash }) => ({
    id,
    multiplier: crashpoint,
    occurredAt: startTime,
    hash: hash?.hash,
  }),
  houseError,
};

/** GraphQL returns its errors with status 200. */
function houseError(response: unknown): string | null {
  const found = z.looseObject({ errors: z.array(z.unknown()).min(1) }).safeParse(response);
  if (!found.success) return null;
  const [first] = found.data.errors;
  const message = z.looseObject({ message: z.string() }).safeParse(first);
  const quoted = message.success ? `"${excerpt(message.data.message, 200)}"` : describe(first);
  return `the house refused the query: ${quoted}; check that the headers contain a valid x-access-token; if they do, its schema has changed`;
}

/**
 * Stake crash, by the GraphQL query that its own pages send.
 *
 * Seen in public clients: the query and its variables, the response newest first with UUIDs as ids, the result as a number
 * of up to seven decimals that is not cut to hundredths, the time as an HTTP date, errors with status 200. Checked: hashes
 * and results against the published chain. Not confirmed: whether it responds without a session; the protection in front
 * of it returns 403 to plain clients, and clients that work send `x-access-token` and `x-language`, which an operator sets
 * under `headers`. In the houses file, write a token as `${NAME}`.
 */
export default adapter<z.infer<typeof options>>({
  name: "stake",
  options,
  paging: "number",
  hasHash: () => true,

  poll: () => ask(0),

  history: (_, { page }) => ask(page * PAGE),

  read: (feed, body, now, readOptions) => readList(shape, feed, body, now, readOptions),
});

function ask(offset: number) {
  const body = JSON.stringify({
    operationName: "CrashGameListHistory",
    query: QUERY,
    variables: { limit: PAGE, offset },
  });
  return { method: "POST", path: PATH, headers: HEADERS, body } as const;
}
