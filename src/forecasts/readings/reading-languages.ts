import { english } from "./reading-english.ts";
import { portuguese } from "./reading-portuguese.ts";
import type { Sentences } from "./reading-sentences.ts";
import { spanish } from "./reading-spanish.ts";

/** The languages of readings, by their codes. */
export const LANGUAGES = ["en", "es", "pt"] as const;

export type Language = (typeof LANGUAGES)[number];

const OF: Record<Language, Sentences> = { en: english, es: spanish, pt: portuguese };

/** The sentences of a language. */
export function sentencesOf(language: Language): Sentences {
  return OF[language];
}
