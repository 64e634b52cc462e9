import { isValidBIC } from "ibantools";
import { z } from "zod";
import { ibanProblem } from "./iban.ts";
import { flag, oneLine } from "./values.ts";

const line = oneLine(140);

/** The settings of bank transfers. They are offered if the beneficiary and the IBAN are set. */
export const bankVariables = {
  BANK_BENEFICIARY: line.optional(),
  BANK_IBAN: z
    .string()
    .transform((text) => text.replaceAll(" ", "").toUpperCase())
    .superRefine((iban, context) => {
      const problem = ibanProblem(iban);
      if (problem !== null) context.addIssue(problem);
    })
    .optional(),
  BANK_BIC: z
    .string()
    .trim()
    .refine((bic) => isValidBIC(bic), "expected a BIC of 8 or 11 capital letters and digits")
    .optional(),
  BANK_NAME: line.optional(),
  BANK_CURRENCIES: z
    .string()
    .default("USD,EUR")
    .transform((text) => [...new Set(text.split(",").map((code) => code.trim()))])
    .refine((codes) => codes.every((code) => /^[A-Z]{3}$/.test(code)), {
      error: "expected codes of three capital letters such as USD,EUR, with commas between",
    }),
  BANK_ONE_PERSON: flag,
};
