import { numberFormats } from "./reading-numbers.ts";
import type { Sentences } from "./reading-sentences.ts";

const { whole, rough, percent, stated, chance, times } = numberFormats("es-ES", { less: "menos de", more: "más de" });
const rounds = (n: number) => (n === 1 ? "1 ronda" : `${whole(n)} rondas`);
const every = (n: number) => (rough(n) === "1" ? "en cada ronda" : `cada ${rough(n)} rondas`);

/** Readings in Spanish. */
export const spanish: Sentences = {
  notice:
    "Solo con fines informativos. Las rondas provienen del generador aleatorio de la casa; ningún resultado está garantizado. +18.",
  paused: "Esta mesa está en pausa: no se dice nada de ella hasta que se vuelva a consultar.",
  silent: "Hace tiempo que no llega ninguna ronda de esta mesa: no se dice nada de ella hasta que llegue una.",
  nothingYet: "Todavía no se conoce ninguna ronda de esta mesa.",
  tooFew: (n) =>
    n === 1
      ? "Solo se conoce 1 ronda de esta mesa, demasiado poco para decir cómo se comporta."
      : `Solo se conocen ${rounds(n)} de esta mesa, demasiado pocas para decir cómo se comporta.`,
  waited: ({ color, gap, every: mean, chance: p }) =>
    `Sin ${color} desde hace ${rounds(gap)} (de media sale ${every(mean)}; una espera así de larga o más se da el ${chance(p)} de las veces).`,
  justCame: (color) => `La última ronda fue ${color}.`,
  waitUnknown: (color) =>
    `No se sabe cuándo salió ${color} por última vez: faltan rondas y no ha vuelto a salir después de ellas.`,
  streak: ({ color, length, chance: p }) =>
    `Las últimas ${rounds(length)} fueron ${color}; el ${chance(p)} de las rachas de ${color} llega hasta ahí.`,
  unchanged: ({ rounds: n, evidence, required, color, share }) =>
    `En ${rounds(n)} de esta mesa el pasado no ha cambiado las probabilidades (evidencia ${times(evidence)}×, exigimos ` +
    `${times(required)}×): ${color} ha salido en el ${percent(share)} de todas las rondas, y esperar no lo hace ni más ni menos probable.`,
  changesOverTime: ({ weight }) =>
    `La evidencia por sí sola pasa de esa marca, pero lo que mira las rondas anteriores tiene el ${percent(weight)} del peso del ` +
    `modelo y exigimos la mitad: unas probabilidades que cambian con el tiempo se ven igual.`,
  changed: ({ rounds: n, evidence, required, weight }) =>
    `En esta mesa lo anterior ha importado: en ${rounds(n)} las probabilidades variaron según las rondas previas (evidencia ` +
    `${times(evidence)}×, exigimos ${times(required)}×; ${percent(weight)} del peso del modelo, exigimos la mitad). ` +
    `Cuánto vale eso se mide en la precisión publicada.`,
  mix: ({ rounds: n, shares, chance: p }) =>
    `De las últimas ${rounds(n)}, ${listed(shares.map(([color, share]) => `el ${percent(share)} fue ${color}`))}; ` +
    `el ${chance(p)} de las muestras al azar difiere más de las rondas anteriores.`,
  lively: ({ level, percentile }) =>
    `Los multiplicadores de las últimas 100 rondas son ${{ low: "bajos", usual: "los habituales", high: "altos" }[level]} ` +
    `para esta mesa: el ${chance(percentile)} de sus propios valores fue menor.`,
  steady: "No hay indicios de que la mesa haya cambiado.",
  drifted: (e) =>
    `La mesa parece haber cambiado: sus rondas más recientes encajan mal con su largo plazo (evidencia ${times(e)}×).`,
  edgeKept: ({ declared, most, required }) =>
    `Las rondas encajan con la ventaja declarada del ${stated(declared)} (mayor evidencia en contra: ${times(most)}×; a partir de ${times(required)}× la damos por no cumplida).`,
  edgeDoubted: ({ declared, now, most, required }) =>
    `Hay evidencia contra la ventaja declarada del ${stated(declared)} (ahora ${times(now)}×, la mayor ${times(most)}×), pero hasta ` +
    `una de cada 20 mesas llega a 20× por azar; con tantas mesas la damos por no cumplida a partir de ${times(required)}×.`,
  edgeRejected: ({ declared, implied, now, most, required }) =>
    `Las rondas no encajan con la ventaja declarada del ${stated(declared)}: resulta un ${percent(implied)} ` +
    `(evidencia en contra: ahora ${times(now)}×, la mayor ${times(most)}×; a partir de ${times(required)}× la damos por no cumplida).`,
};

function listed(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} y ${parts.at(-1)}`;
}
