import { expect, it } from "vitest";
import { States } from "../../src/pass/states.ts";
import { emptyPassState } from "../support/passes.ts";
import { PAUSE_MS, tableOf } from "./histories.ts";

const stateOf = (tableId: number) => emptyPassState({ ...tableOf("consecutive"), tableId }, { pauseMs: PAUSE_MS });
const held = (states: States, tableIds: readonly number[]) =>
  tableIds.filter((tableId) => states.get(tableId) !== undefined);

it("drops the states of tables that were not polled for ten minutes, such as removed ones", () => {
  let nowMs = 0;
  const states = new States(100, () => nowMs);
  for (const tableId of [1, 2, 3]) states.keep(stateOf(tableId));
  nowMs = 300_000;
  states.keep(stateOf(2));
  nowMs = 600_000;
  states.keep(stateOf(4));
  expect(held(states, [1, 2, 3, 4])).toEqual([2, 4]);
});

it("drops the least recently used state when it holds as many as it may", () => {
  let minutes = 0;
  const states = new States(2, () => minutes * 60_000);
  for (const tableId of [1, 2, 1, 3]) {
    minutes += 1;
    states.keep(stateOf(tableId));
  }
  expect(held(states, [1, 2, 3])).toEqual([1, 3]);
});

it("holds the newest state of a table, however soon it follows the last", () => {
  const states = new States(2, () => 0);
  const newest = { ...stateOf(1), version: 7n };
  for (const state of [stateOf(1), newest]) states.keep(state);
  expect(states.get(1)).toBe(newest);
});
