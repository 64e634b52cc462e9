/**
 * The speed of proofs, and the correctness of the public chains: links of our walk against a bare loop of
 * `crypto.createHash` over the same hashes, multipliers by rule, the longest blocking of the event loop while a first
 * response is proven back to the published end, and a walk of every chain from its newest public hash to its end through
 * all of its known hashes.
 */
import { createHash } from "node:crypto";
import { hundredthsOf } from "../../src/houses/fairness/outcome.ts";
import { createProver } from "../../src/houses/fairness/prove.ts";
import { fairnessSettings } from "../../src/houses/fairness/settings.ts";
import { walkBackSliced, type ChainStep } from "../../src/houses/fairness/walk.ts";
import { chainFrom, knownPlaces, PUBLIC_CHAINS } from "../houses/fairness/chains-fixture.ts";
import type { Bench } from "./bench-result.ts";

/** Our walk also pauses for the event loop and compares each hash. */
const MIN_RATIO = 0.8;
/** A slice of a walk is 10,000 links, 3 to 10 ms; measured as CPU time of this thread. */
const MAX_TICK_MS = 50;
const TIMES = 3;
const SHORT_WALK = 100_000;

export default {
  name: "fairness",
  about: "links of hash chains against a bare loop of createHash, multipliers by rule, all public chains to their ends",
  async run({ isShort, say }) {
    const links = isShort ? 100_000 : 2_000_000;
    const results: Row[] = [];
    const failures: string[] = [];
    const speeds = new Map<ChainStep, { ours: number; bare: number }>();
    for (const step of ["sha256_hex", "sha256_raw"] as const) {
      const speed = await linkSpeeds(step, links);
      speeds.set(step, speed);
      results.push(row(`links, ${step}`, links, speed.ours), row(`bare createHash, ${step}`, links, speed.bare));
      const ratio = speed.ours / speed.bare;
      if (ratio < MIN_RATIO) failures.push(`${MIN_RATIO} of a bare loop for ${step}, got ${ratio.toFixed(2)}`);
    }
    for (const rule of ["A", "B", "B9", "S"] as const) {
      const rounds = links / 10;
      results.push(row(`multipliers, rule ${rule}`, rounds, outcomeSpeed(rule, rounds)));
    }
    for (const roundIds of ["consecutive", "opaque"] as const) {
      const waited = await firstProof(roundIds, isShort);
      const what = `first response proven to the end, ids ${roundIds}, ticks of ${waited.longestMs.toFixed(0)} ms at most`;
      results.push(row(what, waited.links, waited.links / waited.seconds));
      if (waited.longestMs > MAX_TICK_MS) {
        failures.push(`ticks of at most ${MAX_TICK_MS} ms, took ${waited.longestMs.toFixed(0)} ms`);
      }
    }
    const wrong: string[] = [];
    for (const known of PUBLIC_CHAINS) {
      const walked = await walkChain(known, isShort);
      say(
        `${known.key}: ${walked.links} links, ${walked.checked} known hashes compared${walked.wrong === null ? "" : `; ${walked.wrong}`}`,
      );
      results.push(
        row(`chain ${known.key}, ${walked.checked} known hashes compared`, walked.links, walked.links / walked.seconds),
      );
      if (walked.wrong !== null) wrong.push(walked.wrong);
    }
    if (wrong.length > 0) throw new Error(`expected every chain to lead through its known hashes: ${wrong.join("; ")}`);
    const hex = speeds.get("sha256_hex");
    return {
      baseline: hex?.bare ?? null,
      ours: hex?.ours ?? null,
      unit: "links/s, SHA-256 over 64 characters",
      results,
      notes: [
        isShort
          ? "the lowest part of each chain only"
          : `each chain from its newest public hash to its end; each speed the best of ${TIMES}`,
      ],
      failures: isShort ? [] : failures,
    };
  },
} satisfies Bench;

type Row = {
  what: string;
  n: number;
  per_second: number;
};

function row(what: string, n: number, perSecond: number): Row {
  return { what, n, per_second: Math.round(perSecond) };
}

function seconds(since: number): number {
  return (performance.now() - since) / 1000;
}

/** Links per second of both, alternating, from the same hash; both must end at the same hash. */
async function linkSpeeds(step: ChainStep, links: number): Promise<{ ours: number; bare: number }> {
  const { hash } = chainOf(step).known;
  const best = { ours: 0, bare: 0 };
  for (let time = 0; time < TIMES; time += 1) {
    const bareFrom = performance.now();
    const expected = bareLoop(step, hash, links);
    best.bare = Math.max(best.bare, links / seconds(bareFrom));
    const oursFrom = performance.now();
    const reached = await walkBackSliced(hash, links, { step });
    best.ours = Math.max(best.ours, links / seconds(oursFrom));
    if (reached !== expected) throw new Error(`expected ${expected} after ${links} links, got ${reached}`);
  }
  return best;
}

function bareLoop(step: ChainStep, hash: string, links: number): string {
  if (step === "sha256_hex") {
    let current = hash;
    for (let link = 0; link < links; link += 1) current = createHash("sha256").update(current).digest("hex");
    return current;
  }
  let current = Buffer.from(hash, "hex");
  for (let link = 0; link < links; link += 1) current = createHash("sha256").update(current).digest();
  return current.toString("hex");
}

function chainOf(step: ChainStep): (typeof PUBLIC_CHAINS)[number] {
  const chain = PUBLIC_CHAINS.find((one) => one.chain_step === step);
  if (chain === undefined) throw new Error(`expected a chain by ${step}`);
  return chain;
}

function outcomeSpeed(rule: "A" | "B" | "B9" | "S", rounds: number): number {
  const known = PUBLIC_CHAINS.find(({ outcome }) => outcome === rule);
  if (known === undefined) throw new Error(`expected a chain of rule ${rule}`);
  const chain = chainFrom({ chain: known.key });
  const hashes = known.vectors.map(([, hash]) => hash);
  let best = 0;
  for (let time = 0; time < TIMES; time += 1) {
    const from = performance.now();
    for (let round = 0; round < rounds; round += 1) hundredthsOf(chain, hashes[round % hashes.length] ?? "");
    best = Math.max(best, rounds / seconds(from));
  }
  return best;
}

/** Proves one round without known points, as ingestion does, and measures the longest tick of the event loop. */
async function firstProof(roundIds: "consecutive" | "opaque", isShort: boolean) {
  const known = PUBLIC_CHAINS.find(({ key }) => key === "blaze");
  if (known === undefined) throw new Error("expected the chain of blaze");
  const chain = chainFrom({ chain: known.key });
  const [id, hash] = isShort ? (known.checkpoints.at(-1) ?? [0, ""]) : [known.known.id, known.known.hash];
  const number = roundIds === "consecutive" ? BigInt(id) : null;
  const claims = [{ number, hash, hundredths: hundredthsOf(chain, hash) }];
  const ticks = watchTicks();
  const from = performance.now();
  const fairness = fairnessSettings.parse({ chain: known.key });
  const { verdicts } = await createProver().prove("bench", fairness, { roundIds, points: [], claims });
  const took = seconds(from);
  const longestMs = ticks.end();
  if (verdicts[0]?.ok !== true) throw new Error(`expected a proof of ${hash}`);
  return { links: id, seconds: took, longestMs };
}

/** Measures the longest tick of the event loop, in milliseconds of this thread's CPU time. */
function watchTicks(): { end(): number } {
  let longest = 0;
  let last = process.threadCpuUsage();
  let isOn = true;
  const onTick = () => {
    const { user, system } = process.threadCpuUsage(last);
    longest = Math.max(longest, user + system);
    last = process.threadCpuUsage();
    if (isOn) setImmediate(onTick);
  };
  setImmediate(onTick);
  return {
    end() {
      isOn = false;
      return longest / 1000;
    },
  };
}

/** Walks a chain to its end and compares every known hash on the way: its checkpoints and sample rounds. */
async function walkChain(known: (typeof PUBLIC_CHAINS)[number], isShort: boolean) {
  const chain = chainFrom({ chain: known.key });
  const places = knownPlaces(known, chain);
  const end = places.at(-1);
  const start = isShort ? places.findLast(({ id }) => id >= (end?.id ?? 0) + SHORT_WALK) : places[0];
  if (start === undefined || end === undefined) throw new Error(`expected known hashes of ${known.key}`);
  const expected = new Map<number, string>();
  for (const { id, hash } of places) if (id < start.id) expected.set(start.id - id, hash);
  for (const [id, hash] of known.vectors) if (id < start.id) expected.set(start.id - id, hash);
  let checked = 0;
  let wrong: string | null = null;
  const from = performance.now();
  await walkBackSliced(start.hash, start.id - end.id, {
    step: chain.step,
    visit: (hash, step) => {
      const met = expected.get(step);
      if (met === undefined) return;
      checked += 1;
      if (met !== hash) wrong ??= `${chain.name} ${start.id - step} is ${hash} and not ${met}`;
    },
  });
  return { links: start.id - end.id, seconds: seconds(from), checked, wrong: wrong as string | null };
}
