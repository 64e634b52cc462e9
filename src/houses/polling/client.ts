/** One request to a house with everything the client needs; variables are already replaced. */
export interface HouseRequest {
  house: string;
  url: string;
  method: "GET" | "POST";
  headers: Record<string, string>;
  body?: string;
  timeoutMs: number;
  /** A 404 is an expected response: the resource does not exist yet. */
  mayBeAbsent?: boolean;
  /** Whether the address may be loopback or private (a house marked `private` with ALLOW_PRIVATE_HOUSES, or the demo's). */
  allowPrivate: boolean;
}

/** Why a request failed. */
export type FailureReason =
  "timeout" | "connection" | "refused_address" | "redirect" | "status" | "too_large" | "not_decodable" | "aborted";

/** Response headers that describe a house's limits, for operators; none that could contain a secret. */
export type DiagnosticHeaders = Record<string, string>;

/** The result of a request. Expected errors are values, not exceptions. */
export type HouseResponse =
  | {
      kind: "response";
      status: number;
      contentType: string | null;
      etag: string | null;
      lastModified: string | null;
      /** Decompressed, at most 4 MiB. */
      body: Buffer;
      elapsedMs: number;
      headers?: DiagnosticHeaders;
    }
  | { kind: "unchanged"; status: 304; elapsedMs: number }
  | { kind: "absent"; status: 404; elapsedMs: number }
  | {
      kind: "failed";
      status: number | null;
      reason: FailureReason;
      detail: string;
      /** From Retry-After of a 429 or 503, in milliseconds, clamped to 1 s … 15 min. */
      retryAfterMs: number | null;
      elapsedMs: number;
      headers?: DiagnosticHeaders;
    };

/** The HTTP client of all houses: one keep-alive agent per house, so that a failing house cannot affect others. */
export interface HouseClient {
  fetch(request: HouseRequest, signal: AbortSignal): Promise<HouseResponse>;
  close(): Promise<void>;
}
