import { text } from "node:stream/consumers";
import { UsageError } from "../../errors.ts";

const [ENTER, NEW_LINE, CTRL_C, CTRL_D, BACKSPACE, DELETE] = ["\r", "\n", "\u0003", "\u0004", "\b", "\u007F"];

/**
 * Reads a new password: from a terminal twice without echo, else the first line of stdin.
 * @throws UsageError if the two differ, or if the input is empty.
 */
export async function askPassword(prompt: string): Promise<string> {
  if (!process.stdin.isTTY) {
    const [line = ""] = (await text(process.stdin)).split(/\r?\n/);
    if (line === "") throw new UsageError("expected a password on stdin, got nothing; or give --generate");
    return line;
  }
  const password = await readHidden(prompt);
  if ((await readHidden("again: ")) !== password) throw new UsageError("the two were not the same; nothing was done");
  return password;
}

/** Reads a line from the terminal without echo. */
function readHidden(prompt: string): Promise<string> {
  const { stdin, stderr } = process;
  stderr.write(prompt);
  stdin.setRawMode(true);
  stdin.setEncoding("utf8");
  return new Promise((resolve, reject) => {
    let typed: string[] = [];
    const end = (settle: () => void) => {
      stdin.off("data", hear);
      stdin.setRawMode(false);
      stdin.pause();
      stderr.write("\n");
      settle();
    };
    const hear = (chunk: string) => {
      for (const character of chunk) {
        if (character === ENTER || character === NEW_LINE || character === CTRL_D)
          return end(() => resolve(typed.join("")));
        if (character === CTRL_C) return end(() => reject(new UsageError("interrupted; nothing was done")));
        if (character === BACKSPACE || character === DELETE) typed = typed.slice(0, -1);
        else typed.push(character);
      }
    };
    stdin.on("data", hear);
    stdin.resume();
  });
}
