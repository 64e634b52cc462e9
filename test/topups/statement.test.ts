import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { amountText } from "../../src/topups/bank/statements/amount.ts";
import { readStatement } from "../../src/topups/bank/statements/statement.ts";

const options = { bank: "main", currencies: ["USD", "EUR"] };
const fixture = (name: string) =>
  readFileSync(path.join(import.meta.dirname, "../fixtures/bank", name), { encoding: "utf8" });

async function statementOf(text: string) {
  const read = await readStatement(text, options);
  if (!read.ok) throw new Error(read.problem);
  return read.statement;
}

async function problemOf(text: string): Promise<string> {
  const read = await readStatement(text, options);
  return read.ok ? "" : read.problem;
}

const linesOf = async (text: string) =>
  (await statementOf(text)).lines.map(({ line }) => ({
    ref: line.bankRef,
    date: line.valueDate,
    amount: amountText(line.amountMinor, line.currency),
    sender: line.sender,
    text: line.remittance,
  }));

/** A camt.053 with these entries. */
const camt = (entries: string) =>
  `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt><Stmt>${entries}</Stmt></BkToCstmrStmt></Document>`;

const entry = (ref: string, { amount = '<Amt Ccy="EUR">10.00</Amt>', details = "" } = {}) =>
  `<Ntry>${amount}<CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><ValDt><Dt>2026-11-20</Dt></ValDt><AcctSvcrRef>${ref}</AcctSvcrRef><NtryDtls><TxDtls>${details}<RltdPties><Dbtr><Nm>Ann</Nm></Dbtr></RltdPties></TxDtls></NtryDtls></Ntry>`;

describe("a camt file", () => {
  it("lists the booked credits of each statement of a camt.053", async () => {
    const text = fixture("camt053-two-accounts.xml");
    expect(await linesOf(text)).toEqual([
      {
        ref: "2026112018401500",
        date: "2026-11-20",
        amount: "250.00 EUR",
        sender: "Müller & Söhne GmbH",
        text: "RF924000H01 SEPA-Überweisung",
      },
      {
        ref: "2026112018401504 E2E-100",
        date: "2026-11-20",
        amount: "100.00 EUR",
        sender: "Ana Kovač",
        text: "Top-up RF510000H02",
      },
      {
        ref: "2026112018401504 8a562c67-ca16-48ba-b074-65581be6f001",
        date: "2026-11-20",
        amount: "200.00 EUR",
        sender: "Ben O'Neill",
        text: 'a < b & "c"',
      },
      {
        ref: "2026112018401504 E2E-300",
        date: "2026-11-20",
        amount: "300.00 EUR",
        sender: "First Bank of Anywhere",
        text: "in dollars",
      },
      { ref: "2026112018401600", date: "2026-11-22", amount: "985.00 USD", sender: "Carol", text: "RF02L000H03" },
    ]);
    expect((await statementOf(text)).skipped).toBe(3); // a debit, a pending credit, the reversal of a debit
  });

  it("is read with any prefix and with single-quoted attributes, here a camt.054", async () => {
    const text = fixture("camt054-prefixed.xml");
    expect(await linesOf(text)).toEqual([
      { ref: "N-1", date: "2026-11-20", amount: "40.50 EUR", sender: "Dürr & <Partner>", text: "Rückfrage <keine>" },
      { ref: "N-4 N-4-1", date: "2026-11-21", amount: "200.00 EUR", sender: "Dora", text: "" },
    ]);
    const { skipped, refused } = await statementOf(text);
    expect(skipped).toBe(3); // a reversal, an entry for information, the debit of a batch
    expect(refused).toEqual([
      { at: 6, problem: expect.stringContaining("expected an amount in EUR, the currency of the entry") },
    ]);
  });

  it("takes CDATA as text: what a payer wrote makes no credit", async () => {
    const forged = entry("forged", { amount: '<Amt Ccy="EUR">5000.00</Amt>' });
    const details = `<RmtInf><Ustrd><![CDATA[hello</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>${forged}<!--]]></Ustrd></RmtInf>`;
    const lines = await linesOf(camt(entry("true", { details })));
    expect(lines.map(({ ref, amount }) => ({ ref, amount }))).toEqual([{ ref: "true", amount: "10.00 EUR" }]);
    expect(lines[0]?.text).toContain("<Ntry>");
  });

  it("takes comments and elements of another namespace for no entries", async () => {
    const other = entry("other").replace("<Ntry>", '<Ntry xmlns="urn:example:other">');
    const lines = await linesOf(camt(`<!-- ${entry("comment")} -->${other}${entry("true")}`));
    expect(lines.map(({ ref }) => ref)).toEqual(["true"]);
  });

  it("does not stop the process, whatever 18 KB of it are", async () => {
    const start = performance.now();
    const delayMs = new Promise<number>((resolve) => setTimeout(() => resolve(performance.now() - start), 1));
    await readStatement(`<Document><Ntry><CdtDbtInd>CRDT</CdtDbtInd>${'<Amt Ccy="EUR"'.repeat(1_300)}`, options);
    expect(await delayMs).toBeLessThan(5_000); // with regular expressions it was 40,000
  });

  it.each([
    ["a document type", `<!DOCTYPE Document>${camt(entry("A1"))}`, "document type"],
    [
      "an entity of its own",
      `<!DOCTYPE d [<!ENTITY e "x">]>${camt(entry("A1", { details: "<x>&e;</x>" }))}`,
      "document type",
    ],
    ["an entity that XML does not define", camt(entry("A1", { details: "<x>&nbsp;</x>" })), "entity"],
    ["an element that is not closed", camt(entry("A1")).replace("</Ntry>", ""), "close tag"],
    ["a file that was cut off", camt(entry("A1")).slice(0, -20), "line 1"],
    ["a second document", camt(entry("A1")) + camt(entry("A2")), "one root element"],
    ["text around the document", `${camt(entry("A1"))} and more`, "line 1"],
    ["too many elements", camt(entry("A1", { details: "<x/>".repeat(200_000) })), "at most"],
    ["too many levels", camt(entry("A1", { details: "<x>".repeat(100) + "</x>".repeat(100) })), "levels"],
    ["too many attributes", camt(`<x ${Array.from({ length: 100 }, (_, n) => `a${n}=""`).join(" ")}/>`), "attributes"],
    ["a text that is too long", camt(`<x>${"y".repeat(2_000_000)}</x>`), "characters"],
    ["another message", "<Document><CstmrCdtTrfInitn/></Document>", "camt.053"],
    ["a page of a site", "<html></html>", "camt.053"],
  ])("is refused with %s", async (_, text, problem) => {
    expect(await problemOf(text)).toContain(problem);
  });

  it("names a line by a reference of the bank, or by the number of an entry with the id of its statement", async () => {
    const numbered = (n: string, refs: string) =>
      entry("", { details: `<Refs>${refs}</Refs>` }).replace("<AcctSvcrRef></AcctSvcrRef>", `<NtryRef>${n}</NtryRef>`);
    const refsOf = async (text: string) => (await linesOf(text)).map(({ ref }) => ref);
    const own = (id: string) => `<AcctSvcrRef>${id}</AcctSvcrRef><EndToEndId>rent</EndToEndId>`;
    expect(await refsOf(camt(numbered("1", own("X-100")) + numbered("2", own("X-101"))))).toEqual(["X-100", "X-101"]);
    expect(await refsOf(camt(`<Id>S-7</Id>${numbered("1", "")}`))).toEqual(["S-7 1"]);
    const chosenByPayer = numbered("1", "<EndToEndId>rent</EndToEndId>");
    expect(await refsOf(camt(`<Id>S-8</Id>${chosenByPayer}`))).toEqual(["S-8 1 rent"]);
    expect(await refsOf(camt(chosenByPayer))).toEqual(["rent"]);
    expect((await statementOf(camt(numbered("1", "")))).refused).toHaveLength(1);
  });

  it("counts an entry that it has twice once, and refuses another one with the same reference", async () => {
    const text = camt(entry("A1") + entry("A2") + entry("A1") + entry("A2", { amount: '<Amt Ccy="EUR">11.00</Amt>' }));
    const { lines, repeated, refused } = await statementOf(text);
    expect(lines.map(({ at, line }) => [at, line.bankRef])).toEqual([
      [1, "A1"],
      [2, "A2"],
    ]);
    expect(repeated).toEqual([{ at: 3, line: lines[0]?.line, first: 1 }]);
    expect(refused).toEqual([{ at: 4, problem: "the same bank reference as row 2: A2, with another amount" }]);
  });

  it("refuses a second payment whose reference its payer chose: equal facts may be of two payments", async () => {
    const rent = entry("", { details: "<Refs><EndToEndId>RENT</EndToEndId></Refs>" });
    const { lines, repeated, refused } = await statementOf(camt(rent + rent));
    expect(lines).toHaveLength(1);
    expect(repeated).toEqual([]);
    const problem =
      "the same reference as row 1: RENT, which the bank did not give; if this is another payment, enter it manually with another reference";
    expect(refused).toEqual([{ at: 2, problem }]);

    const part = (refs: string) =>
      `<TxDtls>${refs}<Amt Ccy="EUR">10.00</Amt><RltdPties><Dbtr><Nm>Ann</Nm></Dbtr></RltdPties></TxDtls>`;
    const batch = (first: string, second = first) =>
      camt(entry("B1").replace(/<NtryDtls>.*<\/NtryDtls>/, `<NtryDtls>${part(first)}${part(second)}</NtryDtls>`));
    const outcome = async (text: string) => {
      const read = await statementOf(text);
      return [read.lines.length, read.repeated.length, read.refused.length];
    };
    const of = (id: string) => `<Refs><TxId>${id}</TxId><EndToEndId>RENT</EndToEndId></Refs>`;
    expect(await outcome(batch("<Refs><EndToEndId>RENT</EndToEndId></Refs>"))).toEqual([1, 0, 1]);
    expect(await outcome(batch(""))).toEqual([1, 0, 1]);
    expect(await outcome(batch(of("T1")))).toEqual([1, 1, 0]);
    expect(await outcome(batch(of("T1"), of("T2")))).toEqual([2, 0, 0]);
  });

  it.each(["NONREF", "NOTPROVIDED"])("takes %s for no reference of an entry or a transaction", async (none) => {
    const details = (own: string) => `<Refs><AcctSvcrRef>${none}</AcctSvcrRef><EndToEndId>${own}</EndToEndId></Refs>`;
    const text = camt(entry(none, { details: details("E-1") }) + entry("A2", { details: details(none) }));
    expect((await linesOf(text)).map(({ ref }) => ref)).toEqual(["E-1", "A2"]);
  });

  it("refuses a credit without a reference, since NOTPROVIDED names no line", async () => {
    const details = "<Refs><EndToEndId>NOTPROVIDED</EndToEndId></Refs>";
    const { lines, refused } = await statementOf(camt(entry("", { details }) + entry("A2")));
    expect(lines.map(({ line }) => line.bankRef)).toEqual(["A2"]);
    expect(refused).toEqual([{ at: 1, problem: expect.stringContaining("reference") }]);
  });
});

describe("a CSV statement", () => {
  it("may have a byte order mark, semicolons, decimal commas, quotes and stray spaces", async () => {
    expect(await linesOf(fixture("semicolons.csv"))).toEqual([
      {
        ref: "2026-1",
        date: "2026-11-20",
        amount: "1234.50 EUR",
        sender: 'Müller; Söhne "Nord" GmbH',
        text: "Zeile 1 Zeile 2",
      },
      { ref: "2026-2", date: "2026-11-20", amount: "12.00 EUR", sender: "Ann Doe", text: '5" Rohr, RF924000H01' },
      { ref: "2026-3", date: "2026-11-21", amount: "7.50 EUR", sender: "Bob", text: "" },
    ]);
    expect((await statementOf(fixture("semicolons.csv"))).lines.map(({ at }) => at)).toEqual([2, 3, 6]);
  });

  const columns = "bank_ref;value_date;amount;currency;sender;text";
  const resultOf = async (...rows: string[]) => {
    const { lines, refused } = await statementOf(rows.join("\n"));
    return { read: lines.map(({ at, line }) => [at, line.bankRef, line.amountMinor]), refused };
  };

  it("is refused when a quote in its header is not closed", async () => {
    const text = 'bank_ref,value_date,amount,currency,"sender\nA1,2026-11-20,5.00,EUR,Ann\n';
    expect(await problemOf(text)).toContain("quote");
  });

  it("loses one row to a quote that is not closed", async () => {
    const { read, refused } = await resultOf(columns, 'A1;2026-11-20;5;EUR;Ann;"gift', "A2;2026-11-20;6;EUR;Bob;x");
    expect(read).toEqual([[3, "A2", 600n]]);
    expect(refused).toEqual([{ at: 2, problem: expect.stringContaining("a quote is not closed in this line") }]);
  });

  it("loses one row to a quoted word", async () => {
    const { read, refused } = await resultOf(
      columns,
      'A1;2026-11-20;5;EUR;Ann;"Miete" November',
      "A2;2026-11-20;6;EUR;Bob;x",
    );
    expect(read).toEqual([[3, "A2", 600n]]);
    expect(refused).toEqual([{ at: 2, problem: expect.stringContaining("quote") }]);
  });

  it("lists every row between two quotes of a payer as refused", async () => {
    const { read, refused } = await resultOf(
      columns,
      'A1;2026-11-20;0,01;EUR;Mallory;"gift',
      "A2;2026-11-20;500,00;EUR;Ann;RF924000H01",
      'A3;2026-11-20;900,00;EUR;Bob;5"" pipe',
      'A4;2026-11-20;0,01;EUR;Mallory;thanks"',
      "A5;2026-11-20;70,00;EUR;Carl;x",
    );
    expect(read).toEqual([[6, "A5", 7_000n]]);
    expect(refused.map(({ at }) => at)).toEqual([2, 3, 4, 5]);
  });

  it("takes a line of a quoted text for no row", async () => {
    const { read, refused } = await resultOf(
      columns,
      '"A1";"2026-11-20";"0,01";"EUR";"Mallory";"a ""b',
      'A8;2026-11-20;9000,00;EUR;Mallory;""x""',
      'A9;2026-11-20;9000,00;EUR;Mallory;RF924000H01"',
      '"A2";"2026-11-20";"5";"EUR";"Ann";"x"',
    );
    expect(read).toEqual([[5, "A2", 500n]]);
    expect(refused.map(({ at }) => at)).toEqual([2, 3, 4]);
  });

  it.each([
    ["semicolons", "date;ref;name;text;amount;currency", "2026-11-20;A1;Mallory;RF924000H01;9000,00;EUR;0,01;EUR"],
    ["commas", "date,ref,name,text,amount,currency", "2026-11-20,A1,Mallory,RF924000H01,9000.00,EUR,0.01,EUR"],
    ["an empty cell at the end", "date;ref;ccy;text;amount;name;x", "2026-11-20;A1;EUR;RF924000H01;9000;1;Mallory;"],
  ])("refuses a row whose payer wrote %s into the text and so moved the amount", async (_, header, row) => {
    const { read, refused } = await resultOf(header, row);
    expect(read).toEqual([]);
    const cells = header.split(/[;,]/).length;
    const problem = expect.stringContaining(`expected at most ${cells} cells as in the header, got `);
    expect(refused).toEqual([{ at: 2, problem }]);
  });

  it("refuses a text below no title, which a payer's separator may have moved there", async () => {
    const { read, refused } = await resultOf(
      "date;ref;ccy;name;text;amount;",
      "2026-11-20;A1;EUR;Mallory;RF924000H01;9000;0,01",
      "2026-11-20;A2;EUR;Ann;RF924000H01;10,00",
    );
    expect(read).toEqual([[3, "A2", 1_000n]]);
    const problem = expect.stringContaining("expected at most 6 cells as in the header, got 7");
    expect(refused).toEqual([{ at: 2, problem }]);
  });

  it("takes rows that end with a separator as the header does", async () => {
    const row = "2026-11-20;A1;EUR;Ann;RF924000H01;10,00;";
    expect((await resultOf("date;ref;ccy;name;text;amount;", row)).read).toEqual([[2, "A1", 1_000n]]);
  });

  it.each(["note", "note;"])("refuses rows of different lengths if %s and the amount follow a text", async (end) => {
    const moved = `2026-11-20;A1;EUR;Mallory;RF924000H01;9000;0,01${end === "note" ? "" : ";"}`;
    const { read, refused } = await resultOf(
      `date;ref;ccy;name;text;amount;${end}`,
      moved,
      `2026-11-20;A2;EUR;Ann;RF924000H01;10,00${end === "note" ? "" : ";"}`,
    );
    expect(read.map(([at]) => at)).toEqual(end === "note" ? [] : [3]);
    expect(refused[0]).toEqual({ at: 2, problem: expect.stringContaining("cells as in the shortest row, got ") });
  });

  it("takes rows without their empty last cells if only texts are at the end", async () => {
    const { read } = await resultOf(columns, "A1;2026-11-20;5;EUR;Ann", "A2;2026-11-20;6;EUR;Bob;x");
    expect(read).toEqual([
      [2, "A1", 500n],
      [3, "A2", 600n],
    ]);
  });

  it.each([
    ["amount", "date;ref;name;amount;currency;text", '2026-11-20;A1;"M;0,01;EUR;y";9000,00;EUR;RF924000H01', "0,01"],
    ["padded amount", "date,ref,name,amount,text,currency", '2026-11-20,A1,"M, 0.01 ,y",9000.00,x,EUR', "0.01"],
    ["currency", "date;ref;amount;name;currency;text", '2026-11-20;A1;9000;"M;JPY;y";EUR;RF924000H01', "JPY"],
  ])("refuses a row in which quotes of a payer hide the %s", async (_, header, row, hidden) => {
    const { read, refused } = await resultOf(header, row);
    expect(read).toEqual([]);
    expect(refused).toEqual([{ at: 2, problem: expect.stringContaining(`"${hidden}" between separators`) }]);
  });

  it.each([
    ["direction", "date ; ref ; name ; D/C ; text ; amount ; ccy", "D"],
    ["reference", "date ; ref ; name ; e2e ; text ; amount ; ccy", "A77"],
    ["direction next to a header without spaces", "date;ref;name;D/C;text;amount;ccy", "D"],
  ])(
    "refuses a row with spaces around its separators in which quotes of a payer hide the %s",
    async (_, header, cell) => {
      const row = `2026-11-20 ; A9 ; "Mallory ; ${cell} ; x" ; C ; RF924000H01 ; 9000,00 ; EUR`;
      const other = "2026-11-20 ; B1 ; Ann ; C ; x ; 10,00 ; EUR";
      const { read, refused } = await resultOf(header, row, other);
      expect(read).toEqual([[3, "B1", 1_000n]]);
      expect(refused).toEqual([{ at: 2, problem: expect.stringContaining(`"${cell}" between separators`) }]);
    },
  );

  it.each(["D", "dr", "EUR", "2026-11-20", "20.11.2026", "-5.00", "(5.00)", ""])(
    "refuses a row in which quotes of a payer hide the cell '%s' after a space",
    async (cell) => {
      const row = `2026-11-20,A1,"M, ${cell}, y",9000.00,x,EUR`;
      const { read, refused } = await resultOf("date,ref,name,amount,text,currency", row);
      expect(read).toEqual([]);
      expect(refused).toEqual([{ at: 2, problem: expect.stringContaining(`"${cell}" between separators`) }]);
    },
  );

  describe("with a quoted number that has several separators of thousands", () => {
    const header = "date,ref,name,amount,text,currency,balance";
    const honest = '2026-11-20,A1,Ann,"1,234,567.89",RF924000H01,EUR,"9,234,567.89"';
    const forged = '2026-11-20,A2,M,"1,234,567.89",x,EUR,10.00'; // the payer M,"1 sent 234 with the text 567.89",x

    it("takes the row", async () => {
      const { read } = await resultOf(header, honest, '2026-11-20,A3,Bob,"1,500.00",x,EUR,"9,500.00"');
      expect(read).toEqual([
        [2, "A1", 123_456_789n],
        [3, "A3", 150_000n],
      ]);
    });

    it.each(["234", "9000.00"])(
      "refuses the row if another amount is %s, as no bank that groups writes",
      async (other) => {
        const { read, refused } = await resultOf(header, forged, `2026-11-20,A4,Bob,${other},x,EUR,10.00`);
        expect(read.map(([at]) => at)).toEqual([3]);
        expect(refused).toEqual([{ at: 2, problem: expect.stringContaining('"234" between separators') }]);
      },
    );

    it("refuses the row if another cell of it may hide a cell", async () => {
      const { read } = await resultOf(header, honest.replace("Ann", '"M,x,y"'));
      expect(read).toEqual([]);
    });
  });

  it("takes separators that are followed by a space in a quoted text", async () => {
    const { read } = await resultOf("date,ref,name,amount,currency,text", '2026-11-20,A1,"Doe,Ann",5,EUR,"a, b, c"');
    expect(read).toEqual([[2, "A1", 500n]]);
  });

  describe("with a column for the direction", () => {
    const withDirection = (title: string, ...directions: string[]) =>
      [
        `bank_ref;value_date;amount;currency;sender;text;${title}`,
        ...directions.map((direction, n) => `A${n + 1};2026-11-20;10,00;EUR;Ann;RF924000H01;${direction}`),
      ].join("\n");
    const refsOf = async (text: string) => {
      const { lines, skipped } = await statementOf(text);
      return { refs: lines.map(({ line }) => line.bankRef), skipped };
    };
    const expected = (column: string) =>
      `expected credit, c, cr, crdt, h, haben, in or incoming, or debit, d, dr, dbit, s, soll, out or outgoing, in the column "${column}"`;

    it.each([
      ["Debit/Credit", "Credit", "Debit"],
      ["Credit/Debit", "C", "D"],
      ["D/C", "cr", "dr"],
      ["C/D", "CR", "DR"],
      ["DR/CR", "Cr", "Dr"],
      ["Credit-Debit Indicator", "CRDT", "DBIT"],
      ["indicator", "credit", "debit"],
      ["Direction", "CREDIT", "DEBIT"],
      ["Direction", "IN", "OUT"],
      ["indicator", "Incoming", "Outgoing"],
      ["Type", "Credit", "Debit"],
      ["Soll/Haben", "H", "S"],
      ["Soll-Haben", "Haben", "Soll"],
    ])("titled %s, takes %s and counts %s as skipped", async (title, credit, debit) => {
      const text = withDirection(title, credit, debit, debit, ` ${credit} `);
      expect(await refsOf(text)).toEqual({ refs: ["A1", "A4"], skipped: 2 });
    });

    it("lists a row with another value or none as refused, and reads the others", async () => {
      const { lines, skipped, refused } = await statementOf(withDirection("D/C", "C", "D", "X", "", "c"));
      expect(lines.map(({ line }) => line.bankRef)).toEqual(["A1", "A5"]);
      expect(skipped).toBe(1);
      expect(refused).toEqual([
        { at: 4, problem: `${expected("D/C")}, got "X"` },
        { at: 5, problem: `${expected("D/C")}, got nothing` },
      ]);
    });

    it("lists a footer that has fewer cells as refused", async () => {
      const { lines, refused } = await statementOf(`${withDirection("Direction", "IN", "OUT")}\nTotal;;10,00`);
      expect(lines.map(({ line }) => line.bankRef)).toEqual(["A1"]);
      expect(refused).toEqual([{ at: 4, problem: `${expected("Direction")}, got nothing` }]);
    });

    it("is refused when no row has a direction, since the meaning of the column is unknown", async () => {
      const advice = "; replace its values, or rename the column if it does not state the direction";
      expect(await problemOf(withDirection("indicator", "", "N", "Y"))).toBe(
        `${expected("indicator")}, got none of them in any row, but "N" in line 3${advice}`,
      );
      expect(await problemOf(withDirection("Direction", "", ""))).toBe(
        `${expected("Direction")}, got nothing in any row${advice}`,
      );
      expect(await problemOf(withDirection("Direction;Type", "X;Credit"))).toContain('"X" in line 2');
      expect(await refsOf(withDirection("Direction"))).toEqual({ refs: [], skipped: 0 });
    });

    it("takes a direction with spaces inside quotes", async () => {
      expect(await refsOf(withDirection("Type", '"CR "', '" DR"'))).toEqual({ refs: ["A1"], skipped: 1 });
    });

    it("ignores a column titled type in which a value is not a direction", async () => {
      const all = { refs: ["A1", "A2", "A3"], skipped: 0 };
      expect(await refsOf(withDirection("Type", "SEPA", "", "Transfer"))).toEqual(all);
      expect(await refsOf(withDirection("Type", "", "", ""))).toEqual(all);
      for (const kind of ["CR", "DR", "C", "S"]) {
        expect(await refsOf(withDirection("Type", "FPI", kind, "BGC"))).toEqual(all);
      }
    });

    it("refuses only the rows without a value if all values of a column titled type are directions", async () => {
      const { lines, skipped, refused } = await statementOf(withDirection("Type", "Credit", "", "Debit"));
      expect(lines.map(({ line }) => line.bankRef)).toEqual(["A1"]);
      expect(skipped).toBe(1);
      expect(refused).toEqual([{ at: 3, problem: `${expected("Type")}, got nothing` }]);
    });

    it("ignores a column titled type next to another column for the direction", async () => {
      expect(await refsOf(withDirection("D/C;Type", "C;credit transfer", "D;fee"))).toEqual({
        refs: ["A1"],
        skipped: 1,
      });
    });

    it("is refused when two columns are for the direction", async () => {
      expect(await problemOf(withDirection("D/C;Direction", "C;C"))).toBe("the header has two columns for direction");
    });

    it("has at most 500 rows together with its debits, so that none is cut off unnoticed", async () => {
      const directions = (debits: number) => [...Array.from({ length: debits }, () => "D"), "C"];
      expect(await refsOf(withDirection("D/C", ...directions(499)))).toEqual({ refs: ["A500"], skipped: 499 });
      expect(await problemOf(withDirection("D/C", ...directions(600)))).toContain("expected at most 500 lines");
      const unknown = Array.from({ length: 500 }, () => "X");
      expect(await problemOf(withDirection("D/C", "C", ...unknown))).toContain("expected at most 500 lines");
    });
  });
});
