/** The documents that are made of the code: `npm run docs` writes them, generated.test.ts checks that they are current. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { Command } from "commander";
import { COMMANDS } from "../../src/cli/commands.ts";
import { addHelp, allCommands } from "../../src/cli/help.ts";
import { loadSettings, SECRET_SETTINGS } from "../../src/config/environment.ts";
import { authorizationPage } from "../security/authorization.ts";
import { housesSchema } from "./houses-schema.ts";
import { SETTING_GROUPS, type SettingText } from "../../src/config/settings-text.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const HELP_WIDTH = 110;
const MADE = "<!-- Made by `npm run docs`. Changes here are lost. -->";

/** Every generated file, by its path from the root. */
export async function generatedFiles(): Promise<Record<string, string>> {
  return {
    "docs/settings.md": settingsPage(),
    ".env.example": envExample(),
    "docs/cli.md": await cliPage(),
    "docs/authorization.md": authorizationPage(MADE),
    "docs/houses.schema.json": `${JSON.stringify(housesSchema(), null, 2)}\n`,
  };
}

const groups: [string, [string, SettingText][]][] = Object.entries<Record<string, SettingText>>(SETTING_GROUPS).map(
  ([title, settings]) => [title, Object.entries(settings)],
);
const defaults: Record<string, unknown> = loadSettings({});

/** The literal default of a setting; empty without one. */
const literalOf = (name: string) =>
  ["string", "number"].includes(typeof defaults[name]) ? String(defaults[name]) : "";

/** A value as a shell reads it. */
const quoted = (value: string) =>
  /^[\w./:@,%+-]*$/.test(value) ? value : `'${value.replaceAll("'", String.raw`'\''`)}'`;

function settingsPage(): string {
  const tables = groups.map(([title, settings]) => {
    const rows = settings.map(([name, { fallback, description }]) => {
      const shown = fallback ?? `\`${literalOf(name)}\``;
      return `| \`${name}\` | ${shown} | ${description.replaceAll("|", "\\|")} |`;
    });
    return `## ${title}\n\n| variable | default | meaning |\n| --- | --- | --- |\n${rows.join("\n")}\n`;
  });
  return `${MADE}

# Settings

For those who configure an instance. Every setting is an environment variable; an empty one counts as not set. \`npm start\` needs none of
them. A wrong value stops the start, and every problem is listed with its variable; secrets are not repeated.

To run on servers of your own, set \`DATABASE_URL\` and \`REDIS_URL\`. To serve other machines, also set \`HOST\`, \`PUBLIC_URL\`,
\`AUTH_SECRET\` and, behind a proxy, \`TRUSTED_PROXIES\`. [.env.example](../.env.example) lists all of them; load a file with
\`set -a; . ./.env; set +a\` in a shell or \`EnvironmentFile=\` in systemd. In such a file, put a value with spaces, \`<\`, \`>\`, \`&\`, \`;\`, \`#\`
or \`$\` in single quotes: \`MAIL_FROM='Rounds <hello@example.com>'\`. Houses have a file of their own: [houses](houses.md).

Secrets can be in files: set \`NAME_FILE\` to the path instead of \`NAME\` to the value. This holds for
${SECRET_SETTINGS.map((name) => `\`${name}\``).join(", ")}, and for every \`\${VAR}\` of the
houses file. An empty file counts as not set.

${tables.join("\n")}`;
}

function envExample(): string {
  const parts = groups.map(([title, settings]) => {
    const lines = settings.map(([name, { fallback, description }]) => {
      const plain = description.replaceAll(/\[([^\]]+)\]\([^)]*\)|`/g, "$1");
      return `# ${plain}; default: ${(fallback ?? literalOf(name)).replaceAll("`", "")}\n#${name}=${fallback === null ? quoted(literalOf(name)) : "''"}`;
    });
    return `## ${title}\n\n${lines.join("\n")}\n`;
  });
  return `# Settings of Roundhouse (docs/settings.md). Copy to .env, remove the # before what you set.\n# Single quotes keep spaces, <, >, &, ;, # and $ as they are.\n# Made by \`npm run docs\`.\n\n${parts.join("\n")}`;
}

/** The whole command line as one program, with every command loaded. */
export async function programOf(): Promise<Command> {
  const program = new Command("roundhouse");
  for (const [purpose, commands] of Object.entries(COMMANDS)) {
    program.commandsGroup(purpose);
    for (const load of Object.values(commands)) program.addCommand(await load());
  }
  addHelp(program);
  return program;
}

const wordsOf = (command: Command): string =>
  command.parent === null ? "" : `${wordsOf(command.parent)} ${command.name()}`.trim();
const isOwn = (command: Command) => command.name() !== "help" && command.parent !== null;
/** Groups such as `house` do nothing themselves; `verify` does, and has a command below it. */
const isLeaf = (command: Command) => command.commands.length === 0 || command.options.length > 0;

/** What `--help` prints. */
function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({ writeOut: (part) => void (text += part), getOutHelpWidth: () => HELP_WIDTH });
  command.outputHelp();
  return text.trimEnd();
}

async function cliPage(): Promise<string> {
  const commands = allCommands(await programOf()).filter(isOwn);
  const parts = Object.entries(COMMANDS).map(([purpose, names]) => {
    const own = commands.filter((one) => Object.hasOwn(names, wordsOf(one).split(" ")[0] ?? "") && isLeaf(one));
    const rows = own.map(
      (one) => `| [\`${wordsOf(one)}\`](#${wordsOf(one).replaceAll(" ", "-")}) | ${one.description()} |`,
    );
    return `### ${purpose.replace(":", "")}\n\n| command | |\n| --- | --- |\n${rows.join("\n")}\n`;
  });
  const details = commands.filter(isLeaf).map((one) => `### ${wordsOf(one)}\n\n\`\`\`\n${helpOf(one)}\n\`\`\`\n`);
  return `${MADE}

# Commands

For those who use the command line. \`npx roundhouse COMMAND\` runs a command in a checkout; \`COMMAND --help\` prints what is listed here.

- Results go to stdout, progress and questions to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage.
- With \`--json\` the result is one JSON object, and an error is one line on stderr:
  \`{"error":{"code":"usage"|"failed"|"bug","message","problems":[{"path","message"}]}}\`.
- Times are \`2026-11-21T04:00\` (UTC) or how long ago: \`90m\`, \`6h\`, \`2d\`.
- Commands that change something write to the audit log; most of them require \`--reason\`.
- \`roundhouse complete bash\`, \`zsh\` or \`fish\` prints a completion script.

## Overview

${parts.join("\n")}
## Details

${details.join("\n")}`;
}

if (import.meta.main)
  for (const [file, text] of Object.entries(await generatedFiles())) writeFileSync(path.join(ROOT, file), text);
