import Prism from "prismjs";
import loadLanguages from "prismjs/components/index.js";
import { escape } from "./escape.ts";

const LANGUAGES = ["bash", "javascript", "json", "python"];
loadLanguages(LANGUAGES);

/** Highlights code as HTML, its parts in spans with a class. If the language is unknown, the code is only escaped. */
export function highlight(text: string, language = ""): string {
  const grammar = LANGUAGES.includes(language) ? Prism.languages[language] : undefined;
  return grammar === undefined ? escape(text) : Prism.highlight(text, grammar, language);
}
