import { etagOf } from "./etag.ts";
import type { Answer } from "./operation.ts";
import type { Table } from "./tables.ts";

/** The ready JSON of one table in one kind of answer. */
export interface Fragment {
  json: string;
  etag: string;
}

/**
 * Makes fragments, and keeps the newest of each table until the table changes or another variant is asked for, so that
 * a call costs joining texts.
 *
 * `variant` stands for whatever else the JSON is made of, such as the table's status, which changes with time alone.
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

interface KeptAnswer extends Answer {
  head: string;
  fragments: readonly Fragment[];
}

/** The newest answer that begins with a fragment, so that one that is asked for again has its ETag already. */
const answers = new WeakMap<Fragment, KeptAnswer>();

/** An answer that lists fragments under a name, beside the plan and the notice where there is one. */
export function listAnswer(
  plan: string,
  name: string,
  fragments: readonly Fragment[],
  beside: { notice?: string } = {},
): Answer {
  const head = `${JSON.stringify({ ok: true, plan, ...beside }).slice(0, -1)},"${name}":[`;
  const [first] = fragments;
  const found = first && answers.get(first);
  if (found?.head === head && isSame(found.fragments, fragments)) return found;
  const answer = {
    head,
    fragments,
    etag: etagOf([head, ...fragments.map(({ etag }) => etag)]),
    json: () => `${head}${fragments.map(({ json }) => json).join(",")}]}`,
  };
  if (first !== undefined) answers.set(first, answer);
  return answer;
}

function isSame(one: readonly Fragment[], other: readonly Fragment[]): boolean {
  return one.length === other.length && one.every((fragment, place) => fragment === other[place]);
}
