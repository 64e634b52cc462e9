import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isOffer, offerOf, type HeldPlan, type Offer, type PlanForSale } from "../../src/purchases/offer.ts";
import * as quotes from "../../src/purchases/quote.ts";
import * as receipts from "../../src/purchases/receipt.ts";
import * as reminders from "../../src/purchases/reminder.ts";
import * as unused from "../../src/purchases/unused.ts";
import * as usedLimits from "../../src/purchases/used-limit.ts";
import { listExamples, runExample } from "../support/examples.ts";

const DAY = 86_400_000_000n;
const NOW = 20_000n * DAY;
const USD = 1_000_000n;

const plan = (name: string, position: number, usd: bigint, days = 30): PlanForSale => ({
  name,
  position,
  priceMicros: usd * USD,
  days,
  isOnSale: true,
  revision: 1n,
});
const STARTER = plan("Starter", 1, 29n);
const PRO = plan("Pro", 2, 99n);
const MAX = plan("Max", 3, 299n);
let ids = 0n;

/** A plan that was bought at its price; days are counted from now. */
const has = ({ name, position, priceMicros }: PlanForSale, from: number, to: number | null): HeldPlan => ({
  entitlementId: ++ids,
  plan: name,
  position,
  startsAt: NOW + BigInt(from) * DAY,
  endsAt: to === null ? null : NOW + BigInt(to) * DAY,
  purchase: to === null ? null : { id: ids, valueMicros: priceMicros },
});
const offered = (wanted: PlanForSale, held: HeldPlan[], at: { asOf?: bigint } = {}): Offer => {
  const offer = offerOf(wanted, held, { now: NOW, ...at });
  if (!isOffer(offer)) throw new Error(offer.message);
  return offer;
};
const refused = (wanted: PlanForSale, held: HeldPlan[]) => {
  const offer = offerOf(wanted, held, { now: NOW });
  return isOffer(offer) ? offer.kind : offer.message;
};
const sumOf = (offer: Offer) => offer.credits.reduce((sum, { micros }) => sum + micros, 0n);

describe("an offer", () => {
  it("of a first plan costs its price, begins with the purchase and lasts its days", () => {
    expect(offered(PRO, [])).toMatchObject({
      kind: "buy",
      paidMicros: 99n * USD,
      discountMicros: 0n,
      startsAt: null,
      lastsMicroseconds: 30n * DAY,
    });
  });

  it("of the same plan follows the last that is paid", () => {
    const held = [has(PRO, -10, 20), has(PRO, 20, 50)];
    expect(offered(PRO, held)).toMatchObject({ kind: "renew", paidMicros: 99n * USD, startsAt: NOW + 50n * DAY });
  });

  it("of a lower plan follows too, once; its renewal may follow it", () => {
    const held = [has(PRO, -10, 20)];
    expect(offered(STARTER, held)).toMatchObject({ kind: "downgrade", startsAt: NOW + 20n * DAY, discountMicros: 0n });
    const changed = [...held, has(STARTER, 20, 50)];
    expect(refused(plan("Mini", 0, 9n), changed)).toContain("only one change can wait");
    expect(refused(PRO, changed)).toContain("only one change can wait");
    expect(refused(STARTER, changed)).toBe("renew");
    expect(refused(MAX, changed)).toBe("upgrade");
  });

  it("of a higher plan begins now, less what is left of what runs and of what was to follow, rounded down", () => {
    const held = [has(STARTER, -10, 20), has(STARTER, 20, 50)];
    const offer = offered(PRO, held);
    expect(offer.credits.map(({ micros }) => micros)).toEqual([(29n * USD * 20n) / 30n, 29n * USD]);
    expect(offer).toMatchObject({ kind: "upgrade", startsAt: null, lastsMicroseconds: 30n * DAY });
    expect(offer.discountMicros).toBe(48_333_333n);
    expect(offer.paidMicros).toBe(50_666_667n);
  });

  it("counts what was left of an earlier plan as paid, so that a second upgrade loses nothing of the first", () => {
    const pro = { ...has(PRO, 0, 30), purchase: { id: 1n, valueMicros: 79n * USD + 20n * USD } };
    expect(offered(MAX, [pro]).discountMicros).toBe(99n * USD);
  });

  it("lasts longer if the remainder is worth more than the new plan, and costs nothing", () => {
    const held = [has(STARTER, 0, 30), ...[30, 60, 90, 120, 150].map((from) => has(STARTER, from, from + 30))];
    const offer = offered(PRO, held);
    expect(offer.discountMicros).toBe(174n * USD);
    expect(offer.paidMicros).toBe(0n);
    expect(offer.lastsMicroseconds).toBe((30n * DAY * 174n) / 99n);
    const worth = offer.paidMicros + offer.discountMicros;
    expect((worth * 10n ** 6n) / offer.lastsMicroseconds).toBe((99n * USD * 10n ** 6n) / (30n * DAY));
  });

  it("is refused if most of the remainder would be lost, because the new plan costs nothing or next to it", () => {
    expect(refused(plan("Gift", 9, 0n), [has(STARTER, -10, 20)])).toContain("most of it would be lost");
    const cent = { ...plan("Cent", 9, 0n), priceMicros: 1n };
    expect(refused(cent, [has(STARTER, -10, 20)])).toContain("most of it would be lost");
    const given = { ...has(STARTER, -10, 20), purchase: null };
    expect(offered(plan("Gift", 9, 0n), [given])).toMatchObject({ kind: "upgrade", paidMicros: 0n });
  });

  it("gives nothing for a granted plan, and is refused next to a plan without an end or one that has not begun", () => {
    const granted = { ...has(STARTER, -10, 20), purchase: null };
    expect(offered(PRO, [granted])).toMatchObject({ kind: "upgrade", discountMicros: 0n, paidMicros: 99n * USD });
    expect(refused(PRO, [has(STARTER, -10, null)])).toContain("without an end");
    expect(refused(STARTER, [has(STARTER, -10, 20), has(STARTER, 20, null)])).toContain("without an end");
    expect(refused(PRO, [has(STARTER, 2, 20)])).toContain("Starter has not begun");
  });

  it("is refused off sale, also as a renewal, and beyond a year ahead", () => {
    expect(refused({ ...PRO, isOnSale: false }, [has(PRO, -10, 20)])).toContain("is not on sale");
    const year = Array.from({ length: 12 }, (_, n) => has(PRO, n * 30 - 1, n * 30 + 29));
    expect(refused(PRO, year)).toContain("12 plans are paid ahead");
    expect(refused(MAX, year)).toBe("upgrade");
  });

  it("of a moment ago is worth what it was then", () => {
    const held = [has(STARTER, -10, 20)];
    const before = offered(PRO, held, { asOf: NOW - DAY });
    expect(before.discountMicros).toBe((29n * USD * 21n) / 30n);
  });

  it("neither makes nor loses value: what is left is never more than was paid, and never less by more than rounding", () => {
    const step = fc.record({
      wanted: fc.constantFrom(STARTER, PRO, MAX, plan("Odd", 2, 7n, 11), plan("Tiny", 4, 1n, 365)),
      days: fc.integer({ min: 0, max: 40 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 14 }), (steps) => {
        let now = NOW;
        let held: HeldPlan[] = [];
        let [paid, used] = [0n, 0n];
        for (const { wanted, days } of steps) {
          const until = now + BigInt(days) * DAY;
          used += worthOf(held, now) - worthOf(held, until);
          now = until;
          held = held.filter(({ endsAt }) => endsAt !== null && endsAt > now);
          const offer = offerOf(wanted, held, { now });
          if (!isOffer(offer)) continue;
          expect(offer.discountMicros).toBe(sumOf(offer));
          expect(offer.discountMicros).toBe(offer.kind === "upgrade" ? worthOf(held, now) : 0n);
          paid += offer.paidMicros;
          const startsAt = offer.startsAt ?? now;
          const made: HeldPlan = {
            ...has(wanted, 0, 1),
            startsAt,
            endsAt: startsAt + offer.lastsMicroseconds,
            purchase: { id: ++ids, valueMicros: offer.paidMicros + offer.discountMicros },
          };
          held = [...(offer.kind === "upgrade" ? [] : held), made];
        }
        expect(used + worthOf(held, now)).toBe(paid);
        for (const [i, { endsAt }] of held.entries()) expect(held[i + 1]?.startsAt ?? endsAt).toBe(endsAt);
      }),
    );
  });
});

function worthOf(held: readonly HeldPlan[], at: bigint): bigint {
  return held.reduce((sum, { purchase, startsAt, endsAt }) => {
    if (purchase === null || endsAt === null) return sum;
    return sum + unused.unusedMicros(purchase.valueMicros, { startsAt, endsAt }, at);
  }, 0n);
}

describe("a quote", () => {
  it("is read as it was written, and is the same offer as long as nothing has changed", () => {
    const offer = offered(PRO, [has(STARTER, -10, 20)]);
    const quote = quotes.quoteOf(offer, NOW);
    expect(quotes.readQuote("Pro", quotes.quoteText(quote))).toEqual(quote);
    expect(quotes.isSameOffer(quote, offer)).toBe(true);
    for (const other of [
      { ...offer, kind: "buy" as const },
      { ...offer, plan: { ...PRO, priceMicros: 1n } },
      { ...offer, plan: { ...PRO, revision: 2n } },
      { ...offer, plan: { ...PRO, name: "Max" } },
      { ...offer, discountMicros: offer.discountMicros + 1n },
      { ...offer, startsAt: NOW },
    ]) {
      expect(quotes.isSameOffer(quote, other)).toBe(false);
    }
  });

  it.each(["", "buy", "buy~1~2~3~now", "buy~1~2~3~now~1~2", "gift~1~2~3~now~1", "buy~-1~2~3~now~1", "buy~1~2~3~x~1"])(
    "is nothing else: %j",
    (text) => expect(quotes.readQuote("Pro", text)).toBeNull(),
  );
});

it.each(
  [
    { file: "quote", exports: quotes },
    { file: "unused", exports: unused },
    { file: "receipt", exports: receipts },
    { file: "reminder", exports: reminders },
    { file: "used-limit", exports: usedLimits },
  ].flatMap(({ file, exports }) =>
    listExamples(`src/purchases/${file}.ts`).map((example) => ({ title: example.title, example, exports })),
  ),
)("the example of $title is true", ({ example, exports }) => {
  const claims = runExample(example, { ...exports });
  expect(claims).not.toHaveLength(0);
  for (const { line, actual, expected } of claims) expect([line, actual]).toEqual([line, expected]);
});
