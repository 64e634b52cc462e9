/** A response header. */
export interface Header {
  description: string;
  example: string | number;
  /** Whether it is always present on the responses that list it. */
  required?: true;
}

/** Every header of the API, by name. */
export const HEADERS = {
  "X-Request-Id": {
    description: "The id of this request; quote it when you report a problem.",
    example: "req_0f8fad5bd9cb469fa16570867728950e",
    required: true,
  },
  "Cache-Control": {
    description: "A private cache may store the response, and must revalidate it.",
    example: "private, no-cache",
  },
  Vary: { description: "The request headers that the response depends on.", example: "X-Api-Key, Accept-Encoding" },
  ETag: {
    description:
      "Identifies this content and its compression. Send it back in `If-None-Match`: a 304, which is free, means that it has not changed. Once the quota is used up, the response is a 429 even then.",
    example: '"n3hU9m0a8Yk2bJt6sQ4xWv1zR5eLc7dPqTfGiKoMyBE-br"',
    required: true,
  },
  "X-Data-Age": {
    description: "Seconds since the published data was last read, or since accuracy last covered every stored round.",
    example: 0,
    required: true,
  },
  "X-Log-Checkpoint": {
    description:
      "Size and root of the newest checkpoint of the public log, which is at `/log/checkpoint`: store one, and you can prove any later change of what precedes it.",
    example: "1234 nfG5Nn2o4cNVKXNjUzZ1kNe2Rz4Kk3QmY1p3m8oJ0bE=",
  },
  "RateLimit-Policy": {
    description: "The limits of the plan: `q` calls in `w` seconds, by name. Days and months are those of UTC.",
    example: '"burst";q=10;w=1, "day";q=100000;w=86400, "month";q=2500000;w=2592000',
  },
  RateLimit: {
    description: "What remains of each limit: `r` calls, and `t` seconds until there are more.",
    example: '"burst";r=9;t=1, "day";r=99876;t=33101, "month";r=2411000;t=811000',
  },
  "X-Quota-Day-Remaining": {
    description: "Calls left this UTC day; absent if the plan has no such limit.",
    example: 99_876,
  },
  "X-Quota-Month-Remaining": {
    description: "Calls left this UTC month; absent if the plan has no such limit.",
    example: 2_411_000,
  },
  "Retry-After": { description: "Seconds to wait before the next request.", example: 33_101, required: true },
  "WWW-Authenticate": { description: "How to authenticate.", example: 'ApiKey realm="api"', required: true },
  Deprecation: {
    description: "Only on a deprecated path: since when it is deprecated, as `@` and seconds since 1970.",
    example: "@1767225600",
  },
  Sunset: {
    description: "Only on a deprecated path: when it is removed, at least six months after the announcement.",
    example: "Wed, 01 Jul 2026 00:00:00 GMT",
  },
  Link: {
    description: "Only on a deprecated path: the page about it, and its successor.",
    example: '</docs#changes>; rel="deprecation"; type="text/html"',
  },
  "Access-Control-Allow-Origin": {
    description: "Pages of any site may read the response.",
    example: "*",
    required: true,
  },
} as const satisfies Record<string, Header>;

/** The name of a response header. */
export type HeaderName = keyof typeof HEADERS;

/** On every response. */
export const ALWAYS: readonly HeaderName[] = ["X-Request-Id", "Cache-Control", "Vary"];

/** On responses to a known key. */
export const LIMITS: readonly HeaderName[] = [
  "RateLimit-Policy",
  "RateLimit",
  "X-Quota-Day-Remaining",
  "X-Quota-Month-Remaining",
  "Deprecation",
  "Sunset",
  "Link",
];

/** References to headers, as a response lists them. */
export function headersOf(names: readonly HeaderName[]): object {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** All headers, for the components of the document. */
export function allHeaders(): object {
  return Object.fromEntries(
    Object.entries<Header>(HEADERS).map(([name, { description, example, required }]) => [
      name,
      {
        description,
        ...(required === undefined ? {} : { required }),
        schema: { type: typeof example === "number" ? "integer" : "string" },
        example,
      },
    ]),
  );
}
