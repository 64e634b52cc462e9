import { FUNCTION_GRANTS, GRANTS, type Part, ROLES, SEQUENCE_GRANTS, withSchema } from "./role-grants.ts";

const PRIVILEGES = { r: "SELECT", a: "INSERT", w: "UPDATE", d: "DELETE" } as const;

/** Something that a role may do: a privilege on a table, on one of its columns, on a sequence or on a function. */
export interface Grant {
  role: string;
  kind: "table" | "sequence" | "function";
  /** With its schema. */
  object: string;
  column: string | null;
  privilege: string;
}

/** The whole list as single grants. */
export function wantedGrants(): Grant[] {
  const tables = Object.entries(GRANTS).flatMap(([table, grants]) =>
    Object.entries(grants).flatMap(([part, text]) =>
      privilegesOf(text).map(({ privilege, column }): Grant => {
        return { role: ROLES[part as Part], kind: "table", object: withSchema(table), column, privilege };
      }),
    ),
  );
  const given = (kind: "sequence" | "function", privilege: string, list: Record<string, readonly Part[]>) =>
    Object.entries(list).flatMap(([object, parts]) =>
      parts.map((part): Grant => {
        return { role: ROLES[part], kind, object: withSchema(object), column: null, privilege };
      }),
    );
  return [...tables, ...given("sequence", "USAGE", SEQUENCE_GRANTS), ...given("function", "EXECUTE", FUNCTION_GRANTS)];
}

/** Sequences and functions that are listed, with their schema. */
export const LISTED_OTHERS = [...Object.keys(SEQUENCE_GRANTS), ...Object.keys(FUNCTION_GRANTS)].map(withSchema);

function privilegesOf(text: string): { privilege: string; column: string | null }[] {
  return [...text.matchAll(/([rawd]+)(?:\(([a-z0-9_,]+)\))?/g)].flatMap(([, letters = "", columns]) =>
    [...letters].flatMap((letter) =>
      (columns?.split(",") ?? [null]).map((column) => ({ privilege: PRIVILEGES[letter as "r"], column })),
    ),
  );
}
