/** Labels of one sample, by name. */
export type Labels = Readonly<Record<string, string>>;

/** One number of a family; `suffix` tells the parts of a histogram apart. */
export interface Sample {
  labels: Labels;
  value: number;
  suffix?: "_bucket" | "_sum" | "_count";
}

/** One metric with all its samples. Names end in their unit (`_seconds`, `_bytes`), counters in `_total`. */
export interface Family {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram";
  samples: readonly Sample[];
}

/**
 * The text that Prometheus reads (exposition format 0.0.4). A family without samples is named all the same, so that a
 * scrape always shows what there is to ask for.
 *
 * @example
 * exposition([{ name: "up", help: "Is it up?", type: "gauge", samples: [{ labels: { part: "a" }, value: 1 }] }]); // => "# HELP up Is it up?\n# TYPE up gauge\nup{part=\"a\"} 1\n"
 */
export function exposition(families: readonly Family[]): string {
  return families.map(familyText).join("");
}

/** The cumulative samples of a histogram: `counts` holds how many fell into each bucket, the last one above all bounds. */
export function histogramSamples(
  labels: Labels,
  bounds: readonly number[],
  { counts, sum }: { counts: ArrayLike<number>; sum: number },
): Sample[] {
  let total = 0;
  const samples: Sample[] = bounds.map((bound, at) => {
    total += counts[at] ?? 0;
    return { labels: { ...labels, le: String(bound) }, value: total, suffix: "_bucket" };
  });
  total += counts[bounds.length] ?? 0;
  samples.push({ labels: { ...labels, le: "+Inf" }, value: total, suffix: "_bucket" });
  samples.push({ labels, value: sum, suffix: "_sum" }, { labels, value: total, suffix: "_count" });
  return samples;
}

function familyText({ name, help, type, samples }: Family): string {
  const head = `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n# TYPE ${name} ${type}\n`;
  return (
    head + samples.map(({ labels, value, suffix = "" }) => `${name}${suffix}${labelText(labels)} ${value}\n`).join("")
  );
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
