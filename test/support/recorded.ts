/**
 * The folder with recorded real rounds, which are no part of the repository; empty if there is none. The
 * suites that need them are skipped then, and that is the one reason for which a test may be skipped.
 */
export const RECORDED_FOLDER = process.env["RECORDED_ROUNDS"] ?? "";
