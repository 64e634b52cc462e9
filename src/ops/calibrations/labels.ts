import { z } from "zod";
import { labelRun } from "../../calibration/runs/run-change-store.ts";
import { auditedAction } from "../audited-action.ts";
import { requireId } from "../../frame/path-id.ts";
import { CALIBRATIONS } from "./run-view.ts";

/** As the columns of calibration_runs allow. */
const MOST_TAGS = 10;
const MOST_NOTE = 2_000;
const TAG = /^[a-z0-9][a-z0-9._:-]{0,39}$/;

/**
 * Tags as typed, with spaces or commas between them, each once and in lower case.
 *
 * @example
 * tagList.parse("Slow, edge-2026 slow"); // => ["slow", "edge-2026"]
 */
export const tagList = z
  .string()
  .max(1_000)
  .default("")
  .transform((text) => [
    ...new Set(
      text
        .toLowerCase()
        .split(/[\s,]+/)
        .filter((tag) => tag !== ""),
    ),
  ]) // prettier-ignore
  .pipe(
    z
      .array(
        z.string().regex(TAG, {
          error: ({ input }) =>
            `expected tags of 1 to 40 of a-z, 0-9, ".", "_", ":" and "-", found ${JSON.stringify(input)}`,
        }),
      )
      .max(MOST_TAGS, `expected at most ${MOST_TAGS} tags`),
  );

/** A tag to filter by; empty for none. */
export const tagFilter = z
  .string()
  .trim()
  .toLowerCase()
  .regex(new RegExp(`^$|${TAG.source}`), "expected one tag")
  .default("");

const form = z.object({
  note: z
    .string()
    .trim()
    .max(MOST_NOTE, `expected at most ${MOST_NOTE} characters`)
    .default("")
    .transform((text) => (text === "" ? null : text.replaceAll("\r\n", "\n"))),
  tags: tagList,
});

/** Sets the note and the tags of a run. */
export const labelRunAction = auditedAction({
  name: "calibration.label",
  path: "/calibrations/runs/:run/labels",
  roles: ["data"],
  isDangerous: false,
  form,
  location: ({ params }) => `${CALIBRATIONS}/runs/${params["run"]}`,
  change: (tx, { params, form: labels }) => labelRun(tx, String(requireId(params["run"])), labels),
});
