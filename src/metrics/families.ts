import { Counter, Gauge, Registry } from "prom-client";

/** One value of a family. */
export interface Sample {
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** One metric whose values were read elsewhere. Names end in their unit (`_seconds`, `_bytes`), counters in `_total`. */
export interface Family {
  name: string;
  help: string;
  type: "counter" | "gauge";
  samples: readonly Sample[];
}

/** The families as text for Prometheus. A family without samples still has its HELP and TYPE lines. */
export function exposeFamilies(families: readonly Family[]): Promise<string> {
  const registry = new Registry();
  for (const { name, help, type, samples } of families) {
    const config = { name, help, labelNames: Object.keys(samples[0]?.labels ?? {}), registers: [registry] };
    const metric = type === "counter" ? new Counter(config) : new Gauge(config);
    if (samples.length === 0) metric.remove(); // prom-client starts a metric without labels at 0
    for (const { labels, value } of samples) metric.inc(labels, value);
  }
  return registry.metrics();
}
