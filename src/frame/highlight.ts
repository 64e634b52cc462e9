import Prism from "prismjs";
import loadLanguages from "prismjs/components/index.js";
import { escape } from "./escape.ts";

const LANGUAGES = ["bash", "javascript", "json", "python"];
loadLanguages(LANGUAGES);

/** HTML of a piece of code, its parts in spans with a class; escaped as it is where the language is not known. */
export function highlight(text: string, language = ""): string {
  const grammar = LANGUAGES.includes(language) ? Prism.languages[language] : undefined;
  return grammar === undefined ? escape(text) : Prism.highlight(text, grammar, language);
}
