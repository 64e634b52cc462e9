import { expect, it } from "vitest";
import { exposeFamilies } from "../../src/metrics/families.ts";
import { readScrape } from "./scraped.ts";

it("exposes values with their labels, and names a family that has none", async () => {
  const labels = { house: 'a "b" \\ c' };
  const text = await exposeFamilies([
    { name: "rounds_total", help: "Rounds.", type: "counter", samples: [{ labels, value: 3 }] },
    { name: "lag_seconds", help: "Lag.", type: "gauge", samples: [{ labels: {}, value: -0.5 }] },
    { name: "workers", help: "Workers.", type: "gauge", samples: [] },
    { name: "mails_total", help: "Mails.", type: "counter", samples: [] },
  ]);
  const scraped = readScrape(text);
  expect(scraped.samples).toEqual(
    new Map([
      [String.raw`rounds_total{house="a \"b\" \\ c"}`, 3],
      ["lag_seconds", -0.5],
    ]),
  );
  expect(scraped.types.get("workers")).toBe("gauge");
  expect(scraped.types.get("mails_total")).toBe("counter");
});
