/** A part of a sentence; `href` is the page of what it names, null for plain text. */
export interface Part {
  text: string;
  href: string | null;
}

const param = encodeURIComponent;
const tablePath = (name: string) => `/ops/tables/${name.split("/").map(param).join("/")}`;

/** The pages of objects by how targets of the audit log name them; the first that fits is used. */
const PAGES: readonly (readonly [name: RegExp, href: (id: string) => string])[] = [
  [/^house ([\w-]+)$/, (id) => `/ops/houses/${param(id)}`],
  [/^table ([\w-]+\/[\w-]+\/[\w-]+)$/, tablePath],
  [/^run (\d+)$/, (id) => `/ops/calibrations/runs/${id}`],
  [/^calibration (\d+)$/, (id) => `/ops/calibrations/${id}`],
  [/^(?:account|caller) (\d+)$/, (id) => `/ops/callers/${id}`],
  [/^operator (\S+)$/, (email) => `/ops/audit?target=${param(email)}`],
  [/^queue ([\w-]+)$/, (id) => `/ops/queues/${param(id)}`],
  [/^bank line (\d+)(?: \(.*\))?$/, (id) => `/ops/bank/lines/${id}`],
  [/^bank import (\d+)$/, (id) => `/ops/bank/imports/${id}`],
  [/^transaction (\d+)$/, (id) => `/ops/ledger/transactions/${id}`],
  [/^plan (\S.*)$/, (id) => `/ops/plans/${param(id)}`],
  [/^mail (\d+)$/, (id) => `/ops/mails/${id}`],
  [/^conflict (\d+)(?:: round \S+)?$/, (id) => `/ops/conflicts/${id}`],
  [/^items? (\d+)$/, (id) => `/ops/quarantine/${id}`],
];

/**
 * A target of the audit log as parts: what is in front of " of " is an object, what follows is the tables or the account
 * that it belongs to.
 *
 * @example
 * linksOf("run 12 of a/b/c"); // => run 12 (link), " of ", a/b/c (link)
 * linksOf("something else"); // => plain text
 */
export function linksOf(target: string): Part[] {
  const cut = target.lastIndexOf(" of ");
  const [object, owner] = cut < 0 ? [target, null] : [target.slice(0, cut), target.slice(cut + 4)];
  const parts = cut < 0 && isTables(object) ? tablesOf(object) : objectsOf(object);
  if (owner === null) return parts;
  return [...parts, { text: " of ", href: null }, ...(isTables(owner) ? tablesOf(owner) : objectsOf(owner))];
}

const TABLE = /^[\w-]+\/[\w-]+\/[\w-]+$/;

/** Whether a text is names of tables, and nothing else. */
function isTables(text: string): boolean {
  return text.split(", ").every((name) => TABLE.test(name));
}

function tablesOf(text: string): Part[] {
  return joined(text.split(", ").map((name) => ({ text: name, href: tablePath(name) })));
}

/** One object, or several of a kind such as "items 1, 2" and "calibrations 1, 2 and 3". */
function objectsOf(text: string): Part[] {
  const [, kind, ids] = /^(items|calibrations) (\d+(?:(?:, | and )\d+)+)$/.exec(text) ?? [];
  if (kind === undefined || ids === undefined) {
    return [{ text: text.replace(/^items(?= \d+$)/, "item"), href: hrefOf(text) }];
  }
  const one = kind === "items" ? "item" : "calibration";
  const links = ids.split(/, | and /).map((id) => ({ text: id, href: hrefOf(`${one} ${id}`) }));
  return [{ text: `${kind} `, href: null }, ...joined(links)];
}

function joined(parts: readonly Part[]): Part[] {
  return parts.flatMap((part, at) => (at === 0 ? [part] : [{ text: ", ", href: null }, part]));
}

function hrefOf(text: string): string | null {
  for (const [name, href] of PAGES) {
    const id = name.exec(text)?.[1];
    if (id !== undefined) return href(id);
  }
  return null;
}
