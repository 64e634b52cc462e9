import { numberFormats } from "./reading-numbers.ts";
import type { Sentences } from "./reading-sentences.ts";

const { whole, rough, percent, stated, chance, times } = numberFormats("pt-BR", { less: "menos de", more: "mais de" });
const rounds = (n: number) => (n === 1 ? "1 rodada" : `${whole(n)} rodadas`);
const every = (n: number) => (rough(n) === "1" ? "em toda rodada" : `a cada ${rough(n)} rodadas`);

/** Readings in Portuguese. */
export const portuguese: Sentences = {
  notice:
    "Apenas para fins informativos. As rodadas vêm do gerador aleatório da casa; nenhum resultado é garantido. +18.",
  paused: "Esta mesa está em pausa: nada é dito sobre ela até que volte a ser consultada.",
  silent: "Há algum tempo não chega nenhuma rodada desta mesa: nada é dito sobre ela até que chegue uma.",
  nothingYet: "Ainda não se conhece nenhuma rodada desta mesa.",
  tooFew: (n) =>
    n === 1
      ? "Só se conhece 1 rodada desta mesa, muito pouco para dizer como ela se comporta."
      : `Só se conhecem ${rounds(n)} desta mesa, muito poucas para dizer como ela se comporta.`,
  waited: ({ color, gap, every: mean, chance: p }) =>
    `Sem ${color} há ${rounds(gap)} (em média sai ${every(mean)}; uma espera tão longa ou maior acontece em ${chance(p)} das vezes).`,
  justCame: (color) => `A última rodada foi ${color}.`,
  waitUnknown: (color) =>
    `Não se sabe quando ${color} saiu pela última vez: faltam rodadas e, depois delas, ainda não voltou a sair.`,
  streak: ({ color, length, chance: p }) =>
    `As últimas ${rounds(length)} foram ${color}; ${chance(p)} das sequências de ${color} chegam até aí.`,
  unchanged: ({ rounds: n, evidence, required, color, share }) =>
    `Em ${rounds(n)} desta mesa o passado não mudou as probabilidades (evidência ${times(evidence)}×, exigimos ` +
    `${times(required)}×): ${color} saiu em ${percent(share)} de todas as rodadas, e esperar não torna isso nem mais nem menos provável.`,
  changesOverTime: ({ weight }) =>
    `A evidência por si só passa dessa marca, mas o que olha para as rodadas anteriores tem ${percent(weight)} do peso do ` +
    `modelo e exigimos a metade: probabilidades que mudam com o tempo têm a mesma aparência.`,
  changed: ({ rounds: n, evidence, required, weight }) =>
    `Nesta mesa o que veio antes fez diferença: em ${rounds(n)} as probabilidades variaram conforme as rodadas anteriores ` +
    `(evidência ${times(evidence)}×, exigimos ${times(required)}×; ${percent(weight)} do peso do modelo, exigimos a metade). ` +
    `Quanto isso vale é medido na precisão publicada.`,
  mix: ({ rounds: n, shares, chance: p }) =>
    `Das últimas ${rounds(n)}, ${listed(shares.map(([color, share]) => `${percent(share)} foram ${color}`))}; ` +
    `${chance(p)} das amostras ao acaso diferem mais das rodadas anteriores.`,
  lively: ({ level, percentile }) =>
    `Os multiplicadores das últimas 100 rodadas são ${{ low: "baixos", usual: "os habituais", high: "altos" }[level]} ` +
    `para esta mesa: ${chance(percentile)} dos seus próprios valores foram menores.`,
  steady: "Não há sinal de que a mesa tenha mudado.",
  drifted: (e) =>
    `A mesa parece ter mudado: suas rodadas mais recentes combinam mal com o longo prazo (evidência ${times(e)}×).`,
  edgeKept: ({ declared, most, required }) =>
    `As rodadas combinam com a vantagem declarada de ${stated(declared)} (maior evidência contra ela: ${times(most)}×; a partir de ${times(required)}× a damos por não cumprida).`,
  edgeDoubted: ({ declared, now, most, required }) =>
    `Há evidência contra a vantagem declarada de ${stated(declared)} (agora ${times(now)}×, a maior ${times(most)}×), mas até ` +
    `uma em cada 20 mesas chega a 20× por acaso; com tantas mesas a damos por não cumprida a partir de ${times(required)}×.`,
  edgeRejected: ({ declared, implied, now, most, required }) =>
    `As rodadas não combinam com a vantagem declarada de ${stated(declared)}: o resultado é ${percent(implied)} ` +
    `(evidência contra ela: agora ${times(now)}×, a maior ${times(most)}×; a partir de ${times(required)}× a damos por não cumprida).`,
};

function listed(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} e ${parts.at(-1)}`;
}
