/** Where a Redis is: one server by its URL, or the nodes of a Redis Cluster by which the others are found. */
export type RedisPlace =
  | { kind: "server"; url: string }
  | {
      kind: "cluster";
      nodes: { host: string; port: number }[];
      /** What every node of it wants. */
      access: { username?: string; password?: string; tls?: object };
    };

const CLUSTER = /^(rediss?)\+cluster:\/\/(?:([^/@\s]*)@)?([^/@\s]+)\/?$/;
const DEFAULT_PORT = 6379;

/**
 * Reads REDIS_URL; null where it is neither form. One address is enough for a cluster that answers by one name.
 *
 * @example
 * placeOfRedis("redis://:geheim@cache:6379/0"); // => { kind: "server", url: "redis://:geheim@cache:6379/0" }
 * placeOfRedis("redis+cluster://:geheim@a:7001,b"); // => { kind: "cluster", nodes: [{ host: "a", port: 7001 }, { host: "b", port: 6379 }], access: { password: "geheim" } }
 * placeOfRedis("redis://a:7001,b:7002"); // => null
 */
export function placeOfRedis(text: string): RedisPlace | null {
  const [, scheme, account = "", hosts = ""] = CLUSTER.exec(text) ?? [];
  if (scheme === undefined) {
    return URL.canParse(text) && /^rediss?:$/.test(new URL(text).protocol) ? { kind: "server", url: text } : null;
  }
  const urls = hosts.split(",").map((host) => URL.parse(`redis://${account}@${host}`));
  const nodes = urls.flatMap((url) => {
    if (url === null || url.hostname === "") return [];
    return [{ host: url.hostname.replaceAll(/[[\]]/g, ""), port: url.port === "" ? DEFAULT_PORT : Number(url.port) }];
  });
  const [username, password] = account.split(/:(.*)/s, 2).concat("", "").map(decoded);
  if (nodes.length < urls.length || username === undefined || password === undefined) return null;
  return {
    kind: "cluster",
    nodes,
    access: {
      ...(username !== "" && { username }),
      ...(password !== "" && { password }),
      ...(scheme === "rediss" && { tls: {} }),
    },
  };
}

/** A text without its percent signs; undefined where they stand for nothing. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
