/**
 * Words that promise, advise or make greedy, as patterns, by language. They stand nowhere in what people read, but for
 * the exceptions, which are taken out of a text before it is searched.
 */
export const PROMISES: Record<"en" | "es" | "pt", readonly RegExp[]> = {
  en: [
    /\bdue\b/iu,
    /\bsure(?:ly|-?fire| thing)?\b/iu,
    /\bguarante\w*/iu,
    /\bwill hit\b/iu,
    /\bwins?\b|\bwinn\w+/iu,
    /\bprofit\w*/iu,
    /\brisk-free\b/iu,
    /\bpredictors?\b/iu,
    /\boverdue\b/iu,
    /\bcan(?:'t|not) lose\b/iu,
    /\bsafe bet\b|\bbet now\b|\bcash ?out at\b/iu,
    /\bjackpot\b/iu,
    /\b(?:must|has to) (?:come|end|hit)\b/iu,
  ],
  es: [
    /\bsegur[oa]s?\b|\bseguramente\b|\baseguramos\b/iu,
    /\bgarantiz\w*|\bgarant[ií]as?\b/iu,
    /\bcerteza\b/iu,
    /\b(?:ya |le |te )toca\b|\btoca (?:que|ya)\b|\btocará\b/iu,
    /\bva a (?:salir|caer|dar)\b|\bsaldrá\b/iu,
    /\bgan(?:a|as|ar|arás|ancia|ancias|ador|adora)\b/iu,
    /\bsin riesgo\b/iu,
    /\bapuest\w+|\bapostar\b/iu,
    /\binfalible\b/iu,
  ],
  pt: [
    /\bgarant\w*/iu,
    /\bcerteza\b|\bcom certeza\b|\bcertamente\b/iu,
    /\bsegur[oa]s?\b|\bseguramente\b/iu,
    /\bvai (?:dar|sair|cair|bater)\b|\bsairá\b/iu,
    /\best[áa] na hora\b/iu,
    /\bganh\w*|\blucr\w*/iu,
    /\bsem risco\b/iu,
    /\bapost\w+/iu,
    /\binfalível\b/iu,
  ],
};

/** Exceptions that are allowed: that nothing is guaranteed, and the name of a reference that is shown to lose. */
const ALLOWED: readonly RegExp[] = [
  /no outcome is guaranteed/giu,
  /ningún resultado está garantizado/giu,
  /nenhum resultado é garantido/giu,
  /["“`'«]due["”`'»]/giu,
];

/** The promises that a text makes, each with its context. */
export function promisesIn(text: string, languages: readonly (keyof typeof PROMISES)[] = ["en", "es", "pt"]): string[] {
  const searched = ALLOWED.reduce((left, allowed) => left.replaceAll(allowed, ""), text);
  return languages.flatMap((language) =>
    PROMISES[language].flatMap((pattern) => {
      const found = pattern.exec(searched);
      return found === null
        ? []
        : [`${language}: …${searched.slice(Math.max(0, found.index - 30), found.index + 40)}…`];
    }),
  );
}
