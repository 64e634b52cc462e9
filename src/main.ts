import { isReaderGone, runProgram } from "./cli/program.ts";

// A reader that stops early and a closed terminal are no failures.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error) => {
    if (!isReaderGone(error)) throw error;
  });
}
process.exitCode = await runProgram(process.argv.slice(2));
// Everything is printed and closed. A connection that still retries must not keep the process alive.
process.exit();
