import { Option, type Command } from 'commander'
import { filledText } from '../../command/parse-args.ts'

/** Declares the options of every verb that drives a run; `yes` says what `--yes` does, where it does not let all calls run. */
export function withDriveOptions(
  verb: Command,
  { yes = 'approve every call that waits for an approval' }: { readonly yes?: string } = {},
): Command {
  return verb
    .addOption(new Option('--yes', yes).conflicts('deny'))
    .option('--deny <reason>', 'deny every call that waits for an approval')
    .option('--by <name>', 'who decides (default: the name of your account)', filledText)
    .addOption(
      new Option('--answer', 'print only the answer on stdout, the rest on stderr').conflicts('json'),
    )
    .option('--config <file>', 'file that exports the agents (default: the nearest tallystick.config.ts)')
    .option('--instructions <file>', 'file of instructions to replace those of the agent')
    .option('--model <id>', 'id of a model of the configuration to replace that of the agent')
    .option('--without-tool <name>', 'remove this tool from the agent; may be repeated', withName)
}

/** Appends one more name of the command line. */
function withName(name: string, before: readonly string[] = []): readonly string[] {
  return [...before, name]
}
