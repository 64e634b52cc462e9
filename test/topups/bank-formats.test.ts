import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseStatement } from "../../src/topups/bank/statements/parse-statement.ts";
import * as amount from "../../src/topups/bank/statements/amount.ts";
import * as checked from "../../src/topups/bank/check-line.ts";
import * as camt from "../../src/topups/bank/statements/statement-camt.ts";
import * as csv from "../../src/topups/bank/statements/statement-csv.ts";
import * as eyes from "../../src/topups/bank/four-eyes.ts";
import * as found from "../../src/topups/bank/find-reference.ts";
import * as iban from "../../src/config/iban.ts";
import * as reference from "../../src/topups/bank/reference.ts";
import { listExamples, runExample } from "../support/examples.ts";

describe("the forms and texts of bank transfers", () => {
  it.each(
    [
      ["topups/bank/statements/amount", amount],
      ["topups/bank/check-line", checked],
      ["topups/bank/find-reference", found],
      ["topups/bank/four-eyes", eyes],
      ["config/iban", iban],
      ["topups/bank/reference", reference],
      ["topups/bank/statements/statement-camt", camt],
      ["topups/bank/statements/statement-csv", csv],
    ].flatMap(([file, module]) =>
      listExamples(`src/${file as string}.ts`).map((example) => ({ ...example, module: module as object })),
    ),
  )("the example of $title holds", (example) => {
    const claims = runExample(example, { ...example.module });
    expect(claims.length).toBeGreaterThan(0);
    for (const { line, actual, expected } of claims) expect(actual, line).toEqual(expected);
  });
});

describe("an amount in a currency of three decimals", () => {
  const READ = { bank: "main", currencies: ["KWD", "EUR"] };
  const csvOf = (...amounts: string[]) =>
    ["ref;date;amount;currency;payer", ...amounts.map((one, at) => `A${at};2026-11-20;${one};KWD;Ann`)].join("\n");
  const minorOf = (text: string) => {
    const read = parseStatement(text, READ);
    if (!read.ok) throw new Error(read.problem);
    return [read.statement.lines.map(({ line }) => line.amountMinor), read.statement.refused.length];
  };

  it.each(["1,234", "12,345"])("is unclear with a comma before three digits: %s", (text) => {
    expect(amount.parseAmount(text, "KWD")).toMatchObject({
      ok: false,
      problem: expect.stringContaining("or a thousand"),
    });
    const [whole, fraction] = text.split(/[.,]/);
    expect(amount.parseAmount(`${whole}${fraction}`, "KWD")).toMatchObject({ value: BigInt(`${whole}${fraction}000`) });
    expect(amount.parseAmount(`${whole}.${fraction}0`, "KWD")).toMatchObject({ value: BigInt(`${whole}${fraction}`) });
  });

  it("has decimals behind a point, unless another amount of the file proves the comma", () => {
    expect(amount.parseAmount("12.500", "KWD")).toEqual({ ok: true, value: 12_500n });
    expect(minorOf(csvOf("12.500", "250.000", "99.950"))).toEqual([[12_500n, 250_000n, 99_950n], 0]);
    expect(minorOf(csvOf("12.500", "0,750"))).toEqual([[750n], 1]);
  });

  it("with a comma is refused in a CSV unless another amount proves it", () => {
    expect(minorOf(csvOf("250,000", "1,234"))).toEqual([[], 2]);
    expect(minorOf(csvOf("250.000", "0.750", "1,234.500"))).toEqual([[250_000n, 750n, 1_234_500n], 0]);
    expect(minorOf(csvOf("250.000", "1234.567"))).toEqual([[250_000n, 1_234_567n], 0]);
    expect(minorOf(csvOf("1,234", "0.750")), "the other mark").toEqual([[750n], 1]);
    expect(minorOf(csvOf("1,234", "0.750", "0,750")), "both marks").toEqual([[750n, 750n], 1]);
  });

  it("has a decimal point in camt", () => {
    const entry = (text: string, ref: string) =>
      `<Ntry><Amt Ccy="KWD">${text}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><ValDt><Dt>2026-11-20</Dt></ValDt><AcctSvcrRef>${ref}</AcctSvcrRef><NtryDtls><TxDtls><RltdPties><Dbtr><Nm>Ann</Nm></Dbtr></RltdPties></TxDtls></NtryDtls></Ntry>`;
    const text = `<Document><BkToCstmrStmt><Stmt><Id>1</Id>${entry("12.345", "A1")}</Stmt></BkToCstmrStmt></Document>`;
    expect(minorOf(text)).toEqual([[12_345n], 0]);
  });
});

describe("a reference", () => {
  // a digit for a letter may be right by chance, since a letter counts as two digits
  const KINDS = ["0123456789", "ABCDEFGHJKMNPQRSTVWXYZ"];
  const anyOf = fc.record({ accountId: fc.bigInt(1n, 2n ** 40n), sequence: fc.bigInt(1n, 2n ** 20n) });

  it("is of 11 to 25 characters, right by ISO 11649, and read back as what it stands for", () => {
    fc.assert(
      fc.property(anyOf, (of) => {
        const made = reference.makeReference(of);
        expect(made).toMatch(/^RF\d{2}[0-9A-HJKMNP-TV-Z]{7,21}$/);
        expect(reference.isReference(made)).toBe(true);
        expect(reference.readReference(iban.inFours(made).toLowerCase())).toEqual(of);
      }),
    );
  });

  it("with one digit, or one letter, changed is no reference, and is found in a text as one with a typo", () => {
    const small = fc.record({ accountId: fc.bigInt(1n, 2n ** 20n), sequence: fc.bigInt(1n, 1_000n) });
    fc.assert(
      fc.property(small, fc.nat(), fc.nat(), (of, place, letter) => {
        const made = reference.makeReference(of);
        const at = 4 + (place % (made.length - 4));
        const kind = KINDS.find((letters) => letters.includes(made.charAt(at)))!;
        const other = kind.charAt((kind.indexOf(made.charAt(at)) + 1 + (letter % (kind.length - 1))) % kind.length);
        const typo = made.slice(0, at) + other + made.slice(at + 1);
        expect(reference.isReference(typo)).toBe(false);
        expect(found.findReferences(`invoice ${typo}, thanks`).close).toContain(made);
      }),
      { numRuns: 25 },
    );
  });

  it("is found at the end of a text with any one character missing", () => {
    const made = reference.makeReference({ accountId: 1n, sequence: 1n });
    expect(made).toHaveLength(11);
    for (let at = 2; at < made.length; at += 1) {
      const short = made.slice(0, at) + made.slice(at + 1);
      expect([short, found.findReferences(`invoice ${short}`).close]).toEqual([short, expect.arrayContaining([made])]);
    }
  });
});

describe("a statement", () => {
  const options = { bank: "main", currencies: ["USD", "EUR"] };

  const entry = (details: string) =>
    `<Document><BkToCstmrStmt><Stmt><Ntry><Amt Ccy="EUR">985.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><ValDt><Dt>2026-11-20</Dt></ValDt><AcctSvcrRef>A1</AcctSvcrRef><NtryDtls>${details}</NtryDtls></Ntry></Stmt></BkToCstmrStmt></Document>`;
  const details = (id: string, own: string) =>
    `<TxDtls><Refs><TxId>${id}</TxId></Refs>${own}<AmtDtls><InstdAmt><Amt Ccy="USD">1100.00</Amt></InstdAmt><TxAmt><Amt Ccy="EUR">500.00</Amt></TxAmt></AmtDtls><Chrgs><Amt Ccy="EUR">15.00</Amt><CdtDbtInd>DBIT</CdtDbtInd></Chrgs><RltdPties><Dbtr><Nm>Ann</Nm></Dbtr></RltdPties></TxDtls>`;
  const amounts = (text: string) => {
    const read = parseStatement(text, options);
    if (!read.ok) return read.problem;
    return read.statement.lines.map(({ line }) => amount.amountText(line.amountMinor, line.currency));
  };

  it("counts what was booked, neither what was sent before charges nor the charges", () => {
    expect(amounts(entry(details("t1", "")))).toEqual(["985.00 EUR"]);
    const several = details("t1", "") + details("t2", '<Amt Ccy="EUR">485.00</Amt><CdtDbtInd>CRDT</CdtDbtInd>');
    expect(amounts(entry(several))).toEqual(["500.00 EUR", "485.00 EUR"]);
  });

  it("in CSV has at most 500 rows, not counting empty ones", () => {
    const csvOf = (rows: number) =>
      [
        "ref;date;amount;currency;payer",
        ...Array.from({ length: rows }, (_, n) => `A${n};2026-11-20;10,00;EUR;Ann\n\n;;;;`),
      ].join("\n");
    expect(amounts(csvOf(500))).toHaveLength(500);
    expect(amounts(csvOf(501))).toBe("expected at most 500 lines in one import, got more; import them in parts");
  });

  it("of whatever text is read or refused, and never breaks the reader", () => {
    const piece = fc.constantFrom(
      "<Ntry>",
      "</Ntry>",
      "<TxDtls>",
      '<Amt Ccy="EUR">1.00</Amt>',
      "<CdtDbtInd>CRDT</CdtDbtInd>",
      "&#0;",
      "&#x110000;",
      "bank_ref,value_date,amount,currency,sender",
      "\n",
      '"',
      ";",
      "2026-11-20",
      "-1",
      "9e9",
      "\u0000",
      "\ud800",
    );
    const text = fc.array(fc.oneof(piece, fc.string()), { maxLength: 30 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(text, (given) => {
        const read = parseStatement(given, options);
        if (!read.ok) expect(read.problem).not.toBe("");
        else for (const { line } of read.statement.lines) expect(line.amountMinor > 0n).toBe(true);
      }),
    );
  });
});
