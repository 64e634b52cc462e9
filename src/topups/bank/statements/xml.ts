import sax, { type QualifiedTag } from "sax";
import type { Parsed } from "./amount.ts";

/** An element of an XML document. */
export interface XmlElement {
  /** Its name without the prefix. */
  name: string;
  /** The namespace of its prefix, or the default one; empty if there is none. */
  namespace: string;
  /** By name without the prefix. */
  attributes: Readonly<Record<string, string>>;
  children: XmlElement[];
  /** The text and CDATA directly inside it. */
  text: string;
}

/** One import has up to 500 lines: about 20,000 elements and 750,000 characters of camt, nested 16 levels deep. */
const LIMITS = { characters: 1_000_000, elements: 50_000, levels: 32, attributes: 16 };

/**
 * The parser checks its buffers after each write, and refuses a tag, comment or declaration above this many characters. It
 * copies a declaration for each of its characters: one of 50,000 took 5 s.
 */
const BUFFER = 8_192;
const CHUNK = 1_024;
Object.assign(sax, { MAX_BUFFER_LENGTH: BUFFER });

/** Only the five entities of XML: by default the parser also accepts those of HTML. */
const OPTIONS = { xmlns: true, strictEntities: true };

/** A document that is refused because of its content; `message` is shown to the person who sent it. */
class Refusal extends Error {}

/**
 * Parses an XML document with namespaces. Refuses document types (and with them entity definitions), documents that are
 * not well-formed, and those that exceed the limits.
 */
export function parseXml(text: string): Parsed<XmlElement> {
  if (text.length > LIMITS.characters) {
    return { ok: false, problem: `expected XML of at most ${LIMITS.characters} characters, got ${text.length}` };
  }
  const parser = sax.parser(true, OPTIONS);
  const open: XmlElement[] = [];
  let root: XmlElement | null = null;
  let [elements, attributes] = [0, 0];

  /* oxlint-disable unicorn/prefer-add-event-listener -- the parser has no other way to listen */
  parser.onerror = (error) => {
    throw error;
  };
  parser.ondoctype = parser.onsgmldeclaration = () => {
    throw new Refusal("expected XML without a document type; a statement has none");
  };
  parser.onopentagstart = () => {
    attributes = 0;
    if (++elements > LIMITS.elements) throw new Refusal(`expected at most ${LIMITS.elements} elements in the XML`);
    if (open.length >= LIMITS.levels) throw new Refusal(`expected XML of at most ${LIMITS.levels} levels`);
  };
  parser.onattribute = () => {
    if (++attributes > LIMITS.attributes) {
      throw new Refusal(`expected elements with at most ${LIMITS.attributes} attributes`);
    }
  };
  parser.onopentag = (tag) => {
    const element = elementOf(tag as QualifiedTag); // with `xmlns` every tag is one
    const parent = open.at(-1);
    if (parent !== undefined) parent.children.push(element);
    else if (root === null) root = element;
    else throw new Refusal("expected one root element in the XML, got another one");
    open.push(element);
  };
  parser.onclosetag = () => void open.pop();
  parser.ontext = parser.oncdata = (part) => {
    const element = open.at(-1);
    if (element !== undefined) element.text += part;
  };

  try {
    const document = text.trim();
    for (let at = 0; at < document.length; at += CHUNK) parser.write(document.slice(at, at + CHUNK));
    parser.close();
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, problem: error.message };
    const [reason = ""] = error instanceof Error ? error.message.split("\n") : [];
    return { ok: false, problem: `expected well-formed XML, got in line ${parser.line + 1}: ${reason.toLowerCase()}` };
  }
  return root === null ? { ok: false, problem: "expected XML, got no element" } : { ok: true, value: root };
}

function elementOf({ local, uri, attributes }: QualifiedTag): XmlElement {
  const values = Object.values(attributes).map((attribute) => [attribute.local, attribute.value] as const);
  return { name: local, namespace: uri, attributes: Object.fromEntries(values), children: [], text: "" };
}

/** Returns the elements at a path of names below an element, all in its namespace. */
export function elementsAt(element: XmlElement, ...names: string[]): XmlElement[] {
  return names.reduce(
    (found, name) =>
      found.flatMap(({ children }) =>
        children.filter((child) => child.name === name && child.namespace === element.namespace),
      ),
    [element],
  );
}

/** Returns the trimmed text of the first element at a path; empty if there is none. */
export function textAt(element: XmlElement, ...names: string[]): string {
  return elementsAt(element, ...names)[0]?.text.trim() ?? "";
}
