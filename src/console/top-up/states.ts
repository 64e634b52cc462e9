import type { Tone } from "../../frame/text/format.ts";
import type { TopupState } from "../../topups/contract.ts";

/** Label and meaning of each state of a top-up. */
export const STATES: Record<TopupState, { word: string; tone: Tone; meaning: string }> = {
  expected: { word: "pending", tone: "info", meaning: "Announced; nothing has arrived yet." },
  seen: { word: "in review", tone: "info", meaning: "It has arrived and is being checked." },
  credited: { word: "credited", tone: "good", meaning: "It is in your balance." },
  rejected: { word: "rejected", tone: "bad", meaning: "It was not added to your balance." },
  cancelled: {
    word: "cancelled",
    tone: "quiet",
    meaning: "You cancelled it. Money that arrives with its reference is checked all the same.",
  },
  expired: {
    word: "expired",
    tone: "quiet",
    meaning: "It did not arrive in time. Money that still arrives with its reference is checked all the same.",
  },
};
