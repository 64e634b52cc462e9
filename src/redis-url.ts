import type { ConnectionOptions } from "node:tls";

/** What a server wants of those that connect. */
interface Access {
  username?: string;
  password?: string;
  tls?: ConnectionOptions;
}

/** The place of a Redis: one server by its URL, the nodes of a Redis Cluster, or the sentinels that know the master. */
export type RedisPlace =
  | { kind: "server"; url: string }
  | { kind: "cluster"; nodes: RedisNode[]; access: Access }
  | { kind: "sentinel"; sentinels: RedisNode[]; master: string; access: Access; sentinelPassword?: string };

/** An address of a Redis process. */
interface RedisNode {
  host: string;
  port: number;
}

const SEVERAL =
  /^(rediss?)\+(cluster|sentinel):\/\/(?:([^/@\s]*)@)?([^/@\s]+?)(?:\/([\w.-]+)?)?(?:\?sentinel_password=([^&\s]+))?$/;
const DEFAULT_PORT = { cluster: 6379, sentinel: 26_379 };

/**
 * Reads REDIS_URL; null if it has none of the forms. One address is enough for a cluster or for sentinels
 * behind one name.
 *
 * @example
 * placeOfRedis("redis://:geheim@cache:6379/0"); // => { kind: "server", url: "redis://:geheim@cache:6379/0" }
 * placeOfRedis("redis+cluster://:geheim@a:7001,b"); // => { kind: "cluster", nodes: [{ host: "a", port: 7001 }, { host: "b", port: 6379 }], access: { password: "geheim" } }
 * placeOfRedis("redis+sentinel://:geheim@a,b:26380/main"); // => { kind: "sentinel", sentinels: [{ host: "a", port: 26379 }, { host: "b", port: 26380 }], master: "main", access: { password: "geheim" } }
 * placeOfRedis("redis://a:7001,b:7002"); // => null
 */
export function placeOfRedis(text: string): RedisPlace | null {
  const [, scheme, kind, account = "", hosts = "", master, sentinelSecret] = SEVERAL.exec(text) ?? [];
  if (scheme === undefined) {
    return URL.canParse(text) && /^rediss?:$/.test(new URL(text).protocol) ? { kind: "server", url: text } : null;
  }
  const isCluster = kind === "cluster";
  const defaultPort = isCluster ? DEFAULT_PORT.cluster : DEFAULT_PORT.sentinel;
  const urls = hosts.split(",").map((host) => URL.parse(`redis://${account}@${host}`));
  const nodes = urls.flatMap((url) => {
    if (url === null || url.hostname === "") return [];
    return [{ host: url.hostname.replaceAll(/[[\]]/g, ""), port: url.port === "" ? defaultPort : Number(url.port) }];
  });
  const [username, password] = account.split(/:(.*)/s, 2).concat("", "").map(decoded);
  if (nodes.length < urls.length || username === undefined || password === undefined) return null;
  const access = {
    ...(username !== "" && { username }),
    ...(password !== "" && { password }),
    ...(scheme === "rediss" && { tls: {} }),
  };
  if (isCluster) return master === undefined && sentinelSecret === undefined ? { kind, nodes, access } : null;
  const sentinelPassword = decoded(sentinelSecret ?? "");
  if (master === undefined || sentinelPassword === undefined) return null;
  return { kind: "sentinel", sentinels: nodes, master, access, ...(sentinelPassword !== "" && { sentinelPassword }) };
}

/** A text without its percent signs; undefined where they stand for nothing. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
