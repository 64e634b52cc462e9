import { runProgram } from "./cli/program.ts";

// `print` throws what it could not write to stdout, and an error of stderr can be reported nowhere.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
process.exitCode = await runProgram(process.argv.slice(2));
// Everything is printed and closed. A connection that still retries must not keep the process alive.
process.exit();
