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
    description: "Names this request; tell it to the operator when something is wrong.",
    example: "req_0f8fad5bd9cb469fa16570867728950e",
    required: true,
  },
  "Cache-Control": {
    description: "Keep it for yourself, and ask whether it is still so.",
    example: "private, no-cache",
  },
  Vary: { description: "What else the answer depends on.", example: "X-Api-Key, Accept-Encoding" },
  ETag: {
    description:
      "Names these contents, and how they are compressed: send it back in `If-None-Match`, and a 304, which is free, says that they are still so.",
    example: '"n3hU9m0a8Yk2bJt6sQ4xWv1zR5eLc7dPqTfGiKoMyBE-br"',
    required: true,
  },
  "X-Data-Age": {
    description: "Seconds since what is published was last read, or since accuracy last covered every stored round.",
    example: 0,
    required: true,
  },
  "X-Log-Checkpoint": {
    description:
      "Size and root of the newest checkpoint of the public log, which is at `/log/checkpoint`: keep one, and everything before it can be held against us.",
    example: "1234 nfG5Nn2o4cNVKXNjUzZ1kNe2Rz4Kk3QmY1p3m8oJ0bE=",
  },
  "RateLimit-Policy": {
    description: "The limits of the plan: `q` calls in `w` seconds, by name. Days and months are those of UTC.",
    example: '"burst";q=10;w=1, "day";q=100000;w=86400, "month";q=2500000;w=2592000',
  },
  RateLimit: {
    description: "What is left of each limit: `r` calls, and `t` seconds until there are more.",
    example: '"burst";r=9;t=1, "day";r=99876;t=33101, "month";r=2411000;t=811000',
  },
  "X-Quota-Day-Remaining": {
    description: "Calls left this UTC day; absent where the plan has no number.",
    example: 99_876,
  },
  "X-Quota-Month-Remaining": {
    description: "Calls left this UTC month; absent where the plan has no number.",
    example: 2_411_000,
  },
  "Retry-After": { description: "Seconds to wait before asking again.", example: 33_101, required: true },
  "WWW-Authenticate": { description: "How to say who asks.", example: 'ApiKey realm="api"', required: true },
  Deprecation: {
    description: "Only on a path that is going to end: since when it is announced, as `@` and seconds since 1970.",
    example: "@1767225600",
  },
  Sunset: {
    description: "Only on a path that is going to end: when, at least six months after the announcement.",
    example: "Wed, 01 Jul 2026 00:00:00 GMT",
  },
  Link: {
    description: "Only on a path that is going to end: the page about it, and the path that takes its place.",
    example: '</docs#changes>; rel="deprecation"; type="text/html"',
  },
  "Access-Control-Allow-Origin": { description: "Pages of any site may read this.", example: "*", required: true },
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
