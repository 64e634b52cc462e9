import { expect, it } from "vitest";
import * as address from "../../src/limits/address.ts";
import { listExamples, runExample } from "../support/examples.ts";

it.each(listExamples("src/limits/address.ts").map((example) => [example.title, example] as const))(
  "the examples of %s hold",
  (_, example) => {
    for (const { actual, ...claim } of runExample(example, address)) {
      expect({ ...claim, expected: actual }).toEqual(claim);
    }
  },
);

it("knows an address however it is written", () => {
  expect(address.networkOf("2001:0DB8:0000:0007:ffff::")).toBe("2001:db8:0:7");
  expect(address.networkOf("fe80::1%eth0")).toBe("fe80:0:0:0");
  expect(address.networkOf("fe80::1%br-lan.100")).toBe("fe80:0:0:0");
  expect(address.networkOf("::FFFF:cb00:7109")).toBe("203.0.113.9");
  expect(address.networkOf("0x7f.1")).toBe("unknown");
  expect(address.networkOf("010.0.0.1")).toBe("unknown");
});
