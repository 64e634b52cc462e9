import {
  context,
  type Attributes,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { BullMQOtel } from "bullmq-otel";
import { reasonOf } from "./errors.ts";
import type { Log } from "./log.ts";

const NAME = "roundhouse";
const EXPORTED_WITHIN_MS = 3_000;

let queues: { telemetry?: BullMQOtel } = {};

/** What BullMQ is given, so that a trace goes from the process that adds a job to the one that runs it; nothing while off. */
export function queueTelemetry(): { telemetry?: BullMQOtel } {
  return queues;
}

/**
 * Sends traces of this process to a collector by OTLP over HTTP; nothing is loaded or traced without an endpoint.
 * Headers of OTEL_EXPORTER_OTLP_HEADERS go along. Gives what sends the last spans, for the end of the process.
 * @param endpoint as OTEL_EXPORTER_OTLP_ENDPOINT: without `/v1/traces`
 * @param part such as "api"; spans are of the service `roundhouse-api` then
 */
export async function startTelemetry(
  endpoint: string | undefined,
  { part, version, log }: { part: string; version: string; log: Log },
): Promise<() => Promise<void>> {
  if (endpoint === undefined) return async () => undefined;
  const [
    { BatchSpanProcessor, NodeTracerProvider },
    { OTLPTraceExporter },
    { resourceFromAttributes },
    { BullMQOtel },
  ] = await Promise.all([
    import("@opentelemetry/sdk-trace-node"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/resources"),
    import("bullmq-otel"),
  ]);
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/+$/, "")}/v1/traces`,
    timeoutMillis: EXPORTED_WITHIN_MS,
  });
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ "service.name": `${NAME}-${part}`, "service.version": version }),
    spanProcessors: [new BatchSpanProcessor(exporter, { exportTimeoutMillis: EXPORTED_WITHIN_MS })],
  });
  provider.register(); // with it, context follows asynchronous calls
  queues = { telemetry: new BullMQOtel({ tracerName: NAME, version }) };
  return () =>
    provider.shutdown().catch((error: unknown) => log.warn(`the last spans were not sent: ${reasonOf(error)}`));
}

/** Does something within a span, which has its failure and what `work` notes; without telemetry only does it. */
export async function traced<Result>(
  name: string,
  attributes: Attributes,
  work: (note: (more: Attributes) => void) => Promise<Result>,
): Promise<Result> {
  if (queues.telemetry === undefined) return work(() => undefined);
  return trace.getTracer(NAME).startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work((more) => span.setAttributes(more));
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR }); // its text may hold what no collector should
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Handles a request within a span that continues the caller's trace; `path` is without parameters, which may be secrets. */
export function traceRequest(request: IncomingMessage, response: ServerResponse, path: string, next: () => void): void {
  if (queues.telemetry === undefined) return next();
  const parent = propagation.extract(ROOT_CONTEXT, request.headers);
  const attributes = { "http.request.method": request.method, "url.path": path };
  const options = { kind: SpanKind.SERVER, attributes };
  const span = trace.getTracer(NAME).startSpan(`${request.method} ${path}`, options, parent);
  response.once("close", () => {
    span.setAttribute("http.response.status_code", response.statusCode);
    span.end();
  });
  context.with(trace.setSpan(parent, span), next);
}
