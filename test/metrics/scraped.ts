/** A scrape as it is read: types by name, and samples as they stand, `name{label="value"}` to number. */
export interface Scraped {
  types: Map<string, string>;
  samples: Map<string, number>;
  /** The value of a sample; undefined where there is none. */
  value(sample: string): number | undefined;
  /** Whether a name that a rule or a panel uses is there: histograms by their parts too. */
  knows(name: string): boolean;
}

/** Reads the exposition format; throws at a line that is not in it, a sample without a type, and one that comes twice. */
export function readScrape(text: string): Scraped {
  const types = new Map<string, string>();
  const samples = new Map<string, number>();
  const knows = (name: string) =>
    types.has(name) || (/_(bucket|sum|count)$/.test(name) && types.get(name.replace(/_[a-z]+$/, "")) === "histogram");
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("# HELP ")) continue;
    const type = /^# TYPE (\w+) (counter|gauge|histogram|summary)$/.exec(line);
    if (type !== null) {
      if (types.has(type[1] ?? "")) throw new Error(`${type[1]} is declared twice`);
      types.set(type[1] ?? "", type[2] ?? "");
      continue;
    }
    const sample = /^((\w+)(?:\{(?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*\})?) (-?[\d.e+-]+|\+Inf|NaN|Nan)$/.exec(line);
    if (sample === null) throw new Error(`not a line of a scrape: ${line}`);
    const [, key = "", name = "", value = ""] = sample;
    if (!knows(name)) throw new Error(`${name} has no type`);
    if (samples.has(key)) throw new Error(`${key} comes twice`);
    samples.set(key, Number(value));
  }
  return { types, samples, knows, value: (key) => samples.get(key) };
}
