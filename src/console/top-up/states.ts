import type { Tone } from "../../frame/text/format.ts";
import type { Topup, TopupState } from "../../topups/contract.ts";

/** What a page states about a top-up. */
interface Status {
  word: string;
  tone: Tone;
  meaning: string;
}

/** The label and meaning of what happened to a top-up. */
export function statusOf({ state, reversedAt }: Pick<Topup, "state" | "reversedAt">): Status {
  return reversedAt === null ? STATES[state] : REVERSED;
}

const REVERSED: Status = {
  word: "reversed",
  tone: "bad",
  meaning: "It was credited and then taken back from your balance.",
};

const STATES: Record<TopupState, Status> = {
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
