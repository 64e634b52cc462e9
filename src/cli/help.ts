import { Command, Help, type Option } from "commander";

const usual = new Help();

/**
 * Completes the help of a program: adds `help WORDS` to each group with an error for unknown commands, and lists each
 * command with its required options.
 */
export function addHelp(program: Command): void {
  for (const command of allCommands(program)) {
    command.configureHelp({ optionDescription, ...(command === program ? {} : { subcommandTerm }) });
    if (command.commands.length > 0) command.helpCommand(false).addCommand(helpCommand(command));
  }
}

/** A command and all its descendants. */
export function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

function helpCommand(group: Command): Command {
  return new Command("help")
    .description("explain a command")
    .argument("[command...]", "the name of the command")
    .action((words: string[]) => {
      let found = group;
      for (const word of words) {
        const next = found.commands.find((one) => one.name() === word);
        if (next === undefined) {
          const known = found.commands.map((one) => one.name()).join(", ");
          group.error(`error: there is no command '${word}'${known === "" ? "" : `; there are ${known}`}`);
        }
        found = next;
      }
      found.help();
    });
}

/** The usage of a command: its name, required options and arguments. */
function subcommandTerm(command: Command): string {
  const required = command.options.filter((option) => option.mandatory && option.defaultValue === undefined);
  const isMore = command.options.length > required.length;
  const names = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return [command.name(), ...required.map(({ flags }) => flags), ...(isMore ? ["[options]"] : []), ...names].join(" ");
}

function optionDescription(option: Option): string {
  const text = usual.optionDescription(option);
  return option.mandatory && option.defaultValue === undefined ? `${text} (required)` : text;
}
