/** Writes facts as sentences: they state only the facts and give no advice. */
import { EVIDENCE_PER_TABLE, type Fact, FEWEST_ROUNDS, WEIGHT_NEEDED } from "./reading-facts.ts";
import { sentencesOf, type Language } from "./reading-languages.ts";
import type { Past, Sentences } from "./reading-sentences.ts";
import type { ReadingState } from "./reading-state.ts";

/**
 * The reading of a table in a language.
 *
 * @throws Error if a fact that every reading has is missing
 */
export function readingText(
  { state, facts, rounds }: { state: ReadingState; facts: readonly Fact[]; rounds: number },
  language: Language,
): string {
  const say = sentencesOf(language);
  if (state === "paused") return say.paused;
  if (state === "silent") return say.silent;
  if (state === "nothing_yet" || rounds === 0) return say.nothingYet;
  if (rounds < FEWEST_ROUNDS || facts.length === 0) return say.tooFew(rounds);
  return [
    waitSentence(say, facts),
    streakSentence(say, facts),
    pastSentence(say, facts),
    mixSentence(say, facts),
    livelySentence(say, facts),
    driftSentence(say, facts),
    edgeSentence(say, facts),
  ]
    .filter((sentence) => sentence !== null)
    .join(" ");
}

/** Facts as callers see them, with their fields in a fixed order, since jsonb reorders keys. */
export function showFacts(facts: readonly Fact[]): Fact[] {
  return facts.map(({ name, value, expected, rounds, unusual }) => ({ name, value, expected, rounds, unusual }));
}

function waitSentence(say: Sentences, facts: readonly Fact[]): string {
  const { name, value, expected } = get(facts, "gap:");
  const color = colorIn(name);
  if (value === null) return say.waitUnknown(color);
  if (value === 0) return say.justCame(color);
  return say.waited({ color, gap: value, every: expected ?? 0, chance: get(facts, "gap_chance:").value ?? 0 });
}

/** No sentence for a streak of one round. */
function streakSentence(say: Sentences, facts: readonly Fact[]): string | null {
  const { name, value } = get(facts, "streak:");
  if (value === null || value < 2) return null;
  return say.streak({ color: colorIn(name), length: value, chance: get(facts, "streak_chance:").value ?? 0 });
}

function pastSentence(say: Sentences, facts: readonly Fact[]): string {
  const evidence = get(facts, "dependence_evidence");
  const color = colorIn(get(facts, "gap:").name);
  const past: Past = {
    rounds: evidence.rounds,
    evidence: evidence.value ?? 0,
    required: get(facts, "dependence_required").value ?? 0,
    weight: get(facts, "dependence_weight").value ?? 0,
    color,
    share: get(facts, `share:${color}`).value ?? 0,
  };
  const isEvident = past.evidence >= past.required;
  if (isEvident && past.weight >= WEIGHT_NEEDED) return say.changed(past);
  return isEvident ? `${say.unchanged(past)} ${say.changesOverTime(past)}` : say.unchanged(past);
}

function mixSentence(say: Sentences, facts: readonly Fact[]): string | null {
  const place = find(facts, "mix_percentile_100");
  if (place?.value == null) return null;
  const shares = facts
    .filter(({ name }) => name.startsWith("share_100:"))
    .map(({ name, value }) => [colorIn(name), value ?? 0] as const);
  return say.mix({ rounds: place.rounds, shares, chance: 1 - place.value });
}

function livelySentence(say: Sentences, facts: readonly Fact[]): string | null {
  const place = find(facts, "ln_multiplier_mean_percentile");
  if (place?.value == null) return null;
  const level = place.value < 0.25 ? "low" : place.value > 0.75 ? "high" : "usual";
  return say.lively({ level, percentile: place.value });
}

function driftSentence(say: Sentences, facts: readonly Fact[]): string {
  const both = [get(facts, "drift_evidence"), get(facts, "drift_evidence_colors")];
  const most = Math.max(...both.map(({ value }) => value ?? 0));
  return both.some(({ unusual }) => unusual) ? say.drifted(most) : say.steady;
}

function edgeSentence(say: Sentences, facts: readonly Fact[]): string | null {
  const edge = find(facts, "edge");
  if (edge?.value == null || edge.expected === null) return null;
  const [now = 0, most = 0, required = 0] = ["edge_evidence", "edge_evidence_max", "edge_required"].map(
    (name) => get(facts, name).value ?? 0,
  );
  const tested = { declared: edge.expected, implied: edge.value, now, most, required };
  if (most >= required) return say.edgeRejected(tested);
  return most >= EVIDENCE_PER_TABLE ? say.edgeDoubted(tested) : say.edgeKept(tested);
}

function colorIn(name: string): string {
  return name.slice(name.indexOf(":") + 1);
}

/** Finds a fact by its name or by the part of the name before the color. */
function find(facts: readonly Fact[], name: string): Fact | undefined {
  return facts.find((fact) => fact.name === name || (name.endsWith(":") && fact.name.startsWith(name)));
}

function get(facts: readonly Fact[], name: string): Fact {
  const fact = find(facts, name);
  if (fact === undefined) throw new Error(`expected a fact ${name} in a reading, got none; the reading is damaged`);
  return fact;
}
