import type { Content } from "../http/call.ts";
import { etagOf } from "../http/etag.ts";
import type { Table } from "../published/tables.ts";

/** The JSON of one table for one kind of response. */
export interface Fragment {
  json: string;
  etag: string;
}

/**
 * Makes fragments, and caches each table's newest until the table changes or another variant is requested, so that a
 * call only joins texts.
 *
 * `variant` is any other input of the JSON, such as the table's status, which changes with time.
 */
export function keepFragments<Variant>(
  make: (table: Table, variant: Variant) => string,
  nameOf: (variant: Variant) => string,
): (table: Table, variant: Variant) => Fragment {
  const kept = new WeakMap<Table, Fragment & { version: number; name: string }>();
  return (table, variant) => {
    const name = nameOf(variant);
    const found = kept.get(table);
    if (found !== undefined && found.version === table.version && found.name === name) return found;
    const json = make(table, variant);
    const fragment = { json, etag: etagOf([json]), version: table.version, name };
    kept.set(table, fragment);
    return fragment;
  };
}

interface CachedContent extends Content {
  of: readonly [plan: string, name: string, notice: string | undefined];
  fragments: readonly Fragment[];
}

/** The newest response that begins with a fragment, so that a repeated request has its ETag ready. */
const contents = new WeakMap<Fragment, CachedContent>();

/** Makes a response that lists fragments under a name, with the plan, and the notice if there is one. */
export function listContent(
  plan: string,
  name: string,
  fragments: readonly Fragment[],
  { notice }: { notice?: string } = {},
): Content {
  const of = [plan, name, notice] as const;
  const [first] = fragments;
  const found = first && contents.get(first);
  if (found !== undefined && isSame(found.of, of) && isSame(found.fragments, fragments)) return found;
  const head = `${JSON.stringify({ ok: true, plan, notice }).slice(0, -1)},"${name}":[`;
  const content = {
    of,
    fragments,
    etag: etagOf([head, ...fragments.map(({ etag }) => etag)]),
    json: () => `${head}${fragments.map(({ json }) => json).join(",")}]}`,
  };
  if (first !== undefined) contents.set(first, content);
  return content;
}

function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, place) => item === other[place]);
}
