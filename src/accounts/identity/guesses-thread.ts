/** Estimates how easily passwords are guessed, in a thread that holds the dictionaries. */
import { ZxcvbnFactory } from "@zxcvbn-ts/core";
import { adjacencyGraphs, dictionary } from "@zxcvbn-ts/language-common";
import { runTasks } from "../../thread.ts";

/** A password, and words that a guesser tries first. */
export interface GuessesTask {
  password: string;
  known: readonly string[];
}

const zxcvbn = new ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs });

runTasks(({ password, known }: GuessesTask): number => zxcvbn.check(password, [...known]).guessesLog10);
