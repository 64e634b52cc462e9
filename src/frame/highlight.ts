import Prism from "prismjs";
import "prismjs/components/prism-bash.js";
import "prismjs/components/prism-json.js";
import "prismjs/components/prism-python.js";
import { escape } from "./escape.ts";

/** HTML of a piece of code, its parts in spans with a class; escaped as it is where the language is not known. */
export function highlight(text: string, language = ""): string {
  const grammar = ["bash", "javascript", "json", "python"].includes(language) ? Prism.languages[language] : undefined;
  return grammar === undefined ? escape(text) : Prism.highlight(text, grammar, language);
}
