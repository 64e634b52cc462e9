import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import { amountText } from "../../topups/bank/amount.ts";
import { findImport, saveImport, takeImport } from "../../topups/bank/import-store.ts";
import { compareLines, saveLines } from "../../topups/bank/line-store.ts";
import { readStatement } from "../../topups/bank/statement.ts";
import { auditEntry } from "../audit-entry.ts";
import { PageError } from "../../frame/errors.ts";
import type { OpsAction, OpsPage } from "../contract.ts";
import { idOf } from "../payloads/listing.ts";
import { roles } from "./decide.ts";

const nothing = z.object({});
const crumbs = [
  { label: "Bank transfers", href: "/ops/bank" },
  { label: "Paste a statement", href: "/ops/bank/import" },
];

/** A form for a whole statement. */
export const importPage: OpsPage<z.infer<typeof nothing>> = {
  path: "/bank/import",
  query: nothing,
  show({ settings }, { visitor }) {
    const data = {
      bank: settings.BANK_NAME ?? "",
      isOnePerson: settings.BANK_ONE_PERSON,
      mayAct: visitor.role === "operator" || visitor.role === "admin",
    };
    return Promise.resolve({ template: "bank/import", title: "Paste a statement", data, crumbs: crumbs.slice(0, 1) });
  },
};

const lookForm = z.object({
  bank: z
    .string()
    .trim()
    .toLowerCase()
    .regex(/^[a-z0-9][a-z0-9 ._-]{0,39}$/, "expected a short name of the bank: letters, digits, spaces, . _ -"),
  statement: z.string().min(1, "expected a statement"),
});

/** Keeps a statement as it was pasted and shows what is in it; nothing is taken in yet. */
export const lookAction: OpsAction<z.infer<typeof lookForm>> = {
  name: "bank.import.look",
  path: "/bank/import",
  roles,
  isDangerous: false,
  form: lookForm,
  async run({ sql, settings }, { visitor, form: { bank, statement: body } }) {
    const read = await readStatement(body, { bank, currencies: settings.BANK_CURRENCIES });
    if (!read.ok) return read;
    const { lines, refused, skipped, format } = read.statement;
    const id = await sql.begin(async (tx) => {
      const saved = await saveImport(tx, { bank, body, by: visitor.operatorId });
      const after = { bank, format, lines: lines.length, refused: refused.length, skipped, sha256: saved.sha256 };
      await appendAudit(
        tx,
        auditEntry(visitor, { action: "bank.import.look", target: `bank import ${saved.id}`, after }),
      );
      return saved.id;
    });
    return { ok: true, message: "", location: `/ops/bank/imports/${id}` };
  },
};

/** What is in a statement that was pasted, and what taking it in would do. */
export const importLookPage: OpsPage<z.infer<typeof nothing>> = {
  path: "/bank/imports/:id",
  query: nothing,
  async show({ sql, settings }, { visitor, params }) {
    const id = idOf(params["id"]);
    const kept = id === null ? null : await findImport(sql, id);
    if (kept === null) return null;
    const read = await readStatement(kept.body, { bank: kept.bank, currencies: settings.BANK_CURRENCIES });
    const lines = read.ok ? read.statement.lines : [];
    const compared = await compareLines(
      sql,
      lines.map(({ line }) => line),
    );
    const data = {
      kept,
      problem: read.ok ? null : read.problem,
      rows: compared.map((one, place) => ({ ...one, at: lines[place]?.at ?? 0 })),
      refused: read.ok ? read.statement.refused : [],
      skipped: read.ok ? read.statement.skipped : 0,
      format: read.ok ? read.statement.format : "",
      count: (is: string) => compared.filter((one) => one.is === is).length,
      isOnePerson: settings.BANK_ONE_PERSON,
      mayAct: visitor.role === "operator" || visitor.role === "admin",
      amountText,
    };
    return { template: "bank/import-look", title: `Statement ${kept.id}`, data, crumbs };
  },
};

/** Takes the lines of a statement in; those that are there already are left as they are. */
export const takeAction: OpsAction<z.infer<typeof nothing>> = {
  name: "bank.import.take",
  path: "/bank/imports/:id/take",
  roles,
  isDangerous: false,
  form: nothing,
  async run({ sql, settings }, { visitor, params }) {
    const id = idOf(params["id"]);
    const kept = id === null ? null : await findImport(sql, id);
    if (id === null || kept === null) throw new PageError(404, "there is no such statement");
    const read = await readStatement(kept.body, { bank: kept.bank, currencies: settings.BANK_CURRENCIES });
    if (!read.ok) return read;
    return sql.begin(async (tx) => {
      if (!(await takeImport(tx, id))) return { ok: false, problem: `statement ${id} was taken in already` } as const;
      const lines = read.statement.lines.map(({ line }) => line);
      // whoever pasted it said what is in it, and must not be the one who approves that
      const saved = await saveLines(tx, lines, { by: kept.enteredById, importId: id });
      const count = (is: string) => saved.filter((one) => one.is === is).length;
      const after = {
        lines: saved.flatMap((one) => (one.is === "new" && one.id !== null ? [String(one.id)] : [])),
        there_already: count("same"),
        others_in_their_place: count("other"),
        refused: read.statement.refused.length,
      };
      await appendAudit(tx, auditEntry(visitor, { action: "bank.import.take", target: `bank import ${id}`, after }));
      const message = `taken in: ${count("new")}, there already: ${count("same")}, left out since another line has their place: ${count("other")}, refused: ${after.refused}`;
      return { ok: true, message, location: "/ops/bank?state=new" } as const;
    });
  },
};
