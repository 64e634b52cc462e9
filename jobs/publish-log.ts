import { resolve } from "node:path";
import { z } from "zod";
import { closeAlert, openAlert } from "../src/alerts/store.ts";
import { logFolderOf } from "../src/config/environment.ts";
import { reasonOf } from "../src/errors.ts";
import { LogRefusal, publishLog } from "../src/record/log/publish-log.ts";
import { job } from "../src/queue/job.ts";

const ALERT = { kind: "log", subject: "log" };

/**
 * Adds statements about everything that moved to the transparency log and signs a checkpoint, every 10 s. When signing
 * could fork the log, or a witness cannot be reached, nothing is signed and an alert gives the reason.
 */
export default job({
  name: "publish-log",
  payload: z.object({}),
  key: () => "log",
  schedule: () => Promise.resolve([{ payload: {}, everyMs: 10_000, offsetMs: 0 }]),
  sweep: null,
  concurrency: 1,
  timeoutMs: 60_000,
  retry: { attempts: 1, firstMs: 1000, maxMs: 1000 },
  pool: "long",

  async run(_, { sql, settings, log, signal }) {
    const { PUBLIC_URL: publicUrl, LOG_WITNESSES: witnesses } = settings;
    try {
      const { damaged, ...published } = await publishLog(
        sql,
        { folder: resolve(logFolderOf(settings)), publicUrl, witnesses },
        signal,
      );
      await closeAlert(sql, log, ALERT);
      // score-accuracy, which cannot add to it either, raises the alert
      for (const table of damaged) log.error(`the log states no accuracy of ${table}, since a row of it is damaged`);
      return published;
    } catch (error) {
      // a full disk or a lost key folder is no refusal, and as silent to readers of the log
      await openAlert(sql, log, { ...ALERT, text: `the transparency log is not signed: ${reasonOf(error)}` });
      if (!(error instanceof LogRefusal)) throw error;
      return { refused: 1 };
    }
  },
});
