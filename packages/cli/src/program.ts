import { TallystickError } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/internal'
import { Argument, Command, CommanderError, type OutputConfiguration } from '@commander-js/extra-typings'
import {
  formatCommand,
  createProcessContext,
  requireHost,
  type CommandContext,
  type CommandHost,
} from './command/context.ts'
import { chooseExitCode, exitCodes, type ExitCode } from './command/exit-code.ts'
import { readOwnVersion } from './version.ts'
import { type Done, runsVerb, type Shell, shells, verbGroups } from './verbs.ts'

const beginning = `Runs of LLM agents, recorded in a ledger: start them, look at them, decide about their calls, check them.

  tallystick run runs.db assistant 'How warm is it in Seoul?'
  tallystick list runs.db
  tallystick show runs.db latest`

const afterHelp = `
<ledger> is a SQLite file, or postgres://user@host/database. <run> is a run's id, an unambiguous
beginning or end of it, or "latest". tallystick <verb> --help shows what a verb takes, and an example.

Words:
- suspended: the run waits for a decision, a result, a higher limit or a child run
- under way: the run is working, and a process drives it
- interrupted: the run was working, and no process drives it any more; resume continues it
- writer: the process that drives a run; "writer 3" is the third that took it over
- tally: how many tool requests have a result; a request without one is open
- settle: give the result of a tool call that an outside system carries out, such as a transfer

Exit codes: 0 ok, 1 failed, 2 wrong use, 3 replay diverged, 4 ledger damaged, 5 not found,
130 ended by Ctrl-C.`

const completionVerb = 'completion'

const wordList = option.listOf(option.anyText)

/**
 * Runs the command line and returns its exit code: errors go to stderr. Rejects only with a `ConfigurationError`, for what
 * is not a list of words or no host.
 */
export async function runCommandLine(
  words: readonly string[],
  host: CommandHost = process,
): Promise<ExitCode> {
  requireOptions('runCommandLine', wordList, words, 'the list of words')
  requireHost('runCommandLine', host)
  const context = createProcessContext(words.includes('--json'), host)
  let exitCode: ExitCode = exitCodes.ok
  const output = {
    writeOut: (text: string) => void context.print(text),
    writeErr: (text: string) => context.aside.write(text),
    // The message is printed once, by reportError.
    outputError: () => undefined,
  }
  let program: Command | undefined
  try {
    program = await buildCommandTree(context, output, { words, done: (code) => (exitCode = code) })
    await program.parseAsync(words, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.ok
    const verb = program?.commands.find((command) => command.name() === words[0])?.name()
    return reportError(context, error, verb)
  }
}

function reportError(context: CommandContext, error: unknown, verb: string | undefined): ExitCode {
  // No verb was named: the help is on stderr already, and is all that there is to say.
  if (error instanceof CommanderError && error.code === 'commander.help') return exitCodes.usage
  const wrongUse = error instanceof CommanderError
  const exitCode = wrongUse ? exitCodes.usage : chooseExitCode(error)
  if (context.json) {
    const message = error instanceof Error ? error.message : String(error)
    const code = wrongUse ? 'usage' : error instanceof TallystickError ? error.code : 'unexpected'
    context.say(JSON.stringify({ error: { code, message, exitCode } }))
  } else if (wrongUse) {
    const help = formatCommand(context.programName, ...(verb === undefined ? [] : [verb]), '--help')
    context.say(`${error.message}\nSee what it takes: ${help}`)
  } else if (error instanceof TallystickError) context.say(`error: ${error.message}`)
  else context.say(error instanceof Error ? (error.stack ?? error.message) : `error: ${String(error)}`)
  return exitCode
}

/**
 * Builds the command line for commander. Loads and declares only the verbs that `words` name, or all of them for a
 * completion script; lists the others by name and summary.
 */
async function buildCommandTree(
  context: CommandContext,
  output: OutputConfiguration,
  { words, done }: { readonly words: readonly string[]; readonly done: Done },
): Promise<Command> {
  const program = new Command('tallystick')
    .usage('<verb> <ledger> [options]')
    .description(beginning)
    .version(readOwnVersion(), '-V, --version', 'print the version of this command')
    .helpOption('-h, --help', 'show this, or what a verb takes')
    .addHelpText('after', afterHelp)
    .exitOverride()
    .configureOutput(output)
    // Only names: the help of a verb shows its arguments.
    .configureHelp({ subcommandTerm: (verb) => verb.name() })
  for (const [heading, verbs] of Object.entries(verbGroups)) {
    program.commandsGroup(heading)
    for (const [name, { summary, example, load }] of Object.entries(verbs)) {
      const verb = program.command(name).description(summary).summary(summary)
      verb.addHelpText('after', formatExample(example))
      if (words.includes(name) || words.includes(completionVerb)) (await load())(verb, context, done)
    }
  }
  addCompletion(program, context)
  return program.helpCommand('help [verb]', 'show what a verb takes')
}

function formatExample(example: string): string {
  return `\nExample:\n  ${example}`
}

function addCompletion(program: Command, context: CommandContext): void {
  const { print } = context
  program
    .command(runsVerb, { hidden: true })
    .argument('<ledger>')
    .action(async (ledger: string) => {
      const { completeRuns } = await import('./completion.ts')
      await completeRuns(context, ledger)
    })
  program
    .command(completionVerb)
    .description('print a script that makes your shell complete this command')
    .summary('print a script for the completion of your shell')
    .addArgument(new Argument('<shell>', 'your shell').choices(shells))
    .addHelpText('after', formatExample('source <(tallystick completion bash)'))
    .action(async (shell: Shell) => {
      const { createScript } = await import('./completion.ts')
      await print(createScript(program, shell))
    })
}
