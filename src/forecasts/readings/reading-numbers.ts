/** Number formats of a language. */
export interface NumberFormats {
  whole: (n: number) => string;
  /** At most one decimal. */
  rough: (n: number) => string;
  /** A share, one decimal. */
  percent: (share: number) => string;
  /** A declared share, up to two decimals of a percent. */
  stated: (share: number) => string;
  /** A chance, two digits; below one in ten thousand only "less than". */
  chance: (p: number) => string;
  /** Evidence, two digits below ten, whole above, between a hundredth and a million. */
  times: (e: number) => string;
}

const LEAST_CHANCE = 0.0001;
const LEAST_TIMES = 0.01;
const MOST_TIMES = 1e6;

/**
 * The formats of a locale; `less` and `more` translate "less than" and "more than".
 *
 * @example
 * numberFormats("en-US", { less: "less than", more: "more than" }).chance(0.088629); // => "8.9%"
 * numberFormats("pt-BR", { less: "menos de", more: "mais de" }).times(1500000); // => "mais de 1.000.000"
 */
export function numberFormats(locale: string, { less, more }: { less: string; more: string }): NumberFormats {
  const format = (options: Intl.NumberFormatOptions) => {
    const formatter = new Intl.NumberFormat(locale, { useGrouping: "always", ...options });
    return (n: number) => formatter.format(n);
  };
  const whole = format({ maximumFractionDigits: 0 });
  const digits = format({ maximumSignificantDigits: 2 });
  const chance = format({ style: "percent", maximumSignificantDigits: 2 });
  return {
    whole,
    rough: format({ maximumFractionDigits: 1 }),
    percent: format({ style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 }),
    stated: format({ style: "percent", maximumFractionDigits: 2 }),
    chance: (p) => (p < LEAST_CHANCE ? `${less} ${chance(LEAST_CHANCE)}` : chance(p)),
    times(e) {
      if (e < LEAST_TIMES) return `${less} ${digits(LEAST_TIMES)}`;
      if (e > MOST_TIMES) return `${more} ${whole(MOST_TIMES)}`;
      return e < 10 ? digits(e) : whole(e);
    },
  };
}
