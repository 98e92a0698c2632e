import { Option, type Command } from 'commander'
import { filledText } from '../../command/parse-args.ts'

/** Declares the options of every verb that drives a run. */
export function withDriveOptions(verb: Command): Command {
  return verb
    .addOption(new Option('--yes', 'approve every call that waits for it').conflicts('deny'))
    .option('--deny <reason>', 'deny every call that waits for an approval')
    .option('--by <name>', 'who decides (default: the name of your account)', filledText)
    .addOption(new Option('--answer', 'print the answer alone; the rest goes to stderr').conflicts('json'))
    .option('--config <file>', 'where the agents are (default: the nearest tallystick.config.ts)')
    .option('--instructions <file>', 'other instructions for the agent')
    .option('--model <id>', 'another model, of those that the configuration knows')
    .option('--without-tool <name>', 'a tool that the agent is not to have; may be repeated', withName)
}

/** Appends one more name of the command line. */
function withName(name: string, before: readonly string[] = []): readonly string[] {
  return [...before, name]
}
