import { readFileSync } from 'node:fs'
import { Argument, Command } from 'commander'
import type { OutputConfiguration } from 'commander'
import { addContract } from './verbs/check/add-contract.ts'
import { exampleOf, type Done } from './command/add-verb.ts'
import { addCheckVerbs } from './verbs/check/check.ts'
import type { CommandContext } from './command/command-context.ts'
import { addDecideVerbs } from './verbs/decide/decide.ts'
import { addDriveVerbs } from './verbs/drive/drive.ts'
import { addTransferVerbs } from './verbs/transfer/transfer.ts'
import { addInspectVerbs } from './verbs/inspect/inspect.ts'
import { addRetentionVerbs } from './verbs/retention/retention.ts'
import { runsVerb, shells, type Shell } from './shells.ts'
import { addWatchVerbs } from './verbs/watch/watch.ts'

const beginning = `Agents that keep a ledger: start their runs, look at them, answer what they wait for, check them.

  tallystick run runs.db assistant 'How warm is it in Seoul?'
  tallystick list runs.db
  tallystick show runs.db latest`

const afterHelp = `
<ledger> is a file of SQLite, or postgres://user@host/database. <run> is a run's id, an unambiguous
beginning or end of it, or "latest". tallystick <verb> --help shows what a verb takes, and an example.

Words:
- suspended: the run waits for a decision, a result, a higher limit or an input
- in flight: work of the run is under way, and a process may be driving it
- interrupted: work of it was under way, and no process drives it; resume goes on
- writer: the process that drives a run; "writer 3" is the third that took it over
- tally: the model's tool requests beside their results; a request without one is open
- settle: give the result of a tool call that goes on outside, such as a transfer

Exit codes: 0 ok, 1 failed, 2 wrong use, 3 replay diverged, 4 ledger damaged, 5 not found,
130 ended by Ctrl-C.`

/** The command line as commander reads it. Each verb is imported when it is used. */
export function commandTree(context: CommandContext, output: OutputConfiguration, done: Done): Command {
  const program = new Command('tallystick')
    .usage('<verb> <ledger> [options]')
    .description(beginning)
    .version(ownVersion(), '-V, --version', 'print the version of this command')
    .helpOption('-h, --help', 'show this, or what a verb takes')
    .addHelpText('after', afterHelp)
    .exitOverride()
    .configureOutput(output)
    // At a glance: what a verb takes, its own help says.
    .configureHelp({ subcommandTerm: (verb) => verb.name() })
  const groups: readonly (readonly [heading: string, add: (typeof addDriveVerbs)[]])[] = [
    ['Drive runs:', [addDriveVerbs]],
    ['Look at them:', [addInspectVerbs, addWatchVerbs]],
    ['Answer what they wait for:', [addDecideVerbs]],
    ['Check them:', [addCheckVerbs]],
    ['Move them:', [addTransferVerbs]],
    ['Take content away:', [addRetentionVerbs]],
    ['Beside them:', [addContract, addCompletion]],
  ]
  for (const [heading, adders] of groups) {
    program.commandsGroup(heading)
    for (const add of adders) add(program, context, done)
  }
  return program.helpCommand('help [verb]', 'show what a verb takes')
}

function ownVersion(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { readonly version: string }).version
}

function addCompletion(program: Command, context: CommandContext): void {
  const { print } = context
  program
    .command(runsVerb, { hidden: true })
    .argument('<ledger>')
    .action(async (ledger: string) => {
      const { completeRuns } = await import('./verbs/complete/complete-runs.ts')
      await completeRuns(context, ledger)
    })
  program
    .command('completion')
    .description('print a script that makes your shell complete this command')
    .summary('print a script for the completion of your shell')
    .addArgument(new Argument('<shell>', 'your shell').choices(shells))
    .addHelpText('after', exampleOf('completion'))
    .action(async (shell: Shell) => {
      const { completionScript } = await import('./completion.ts')
      await print(completionScript(program, shell))
    })
}
