import { CommanderError, type Command } from 'commander'
import { TallystickError } from '@tallystick/core'
import type { CommandContext, CommandHost } from './command/command-context.ts'
import { commandLine, processContext } from './command/command-context.ts'
import { commandTree } from './command-tree.ts'
import type { ExitCode } from './command/exit-code.ts'
import { exitCodeOf, exitCodes } from './command/exit-code.ts'

/** Runs the command line and answers its exit code. Never rejects: what goes wrong is on stderr. */
export async function runCommandLine(
  words: readonly string[],
  host: CommandHost = process,
): Promise<ExitCode> {
  const context = processContext(words.includes('--json'), host)
  let exitCode: ExitCode = exitCodes.ok
  const output = {
    writeOut: (text: string) => void context.print(text),
    writeErr: (text: string) => context.aside.write(text),
    // The message is printed once, by reportError.
    outputError: () => undefined,
  }
  let program: Command | undefined
  try {
    program = await commandTree(context, output, { words, done: (code) => (exitCode = code) })
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
  const exitCode = wrongUse ? exitCodes.usage : exitCodeOf(error)
  if (context.json) {
    const code = wrongUse ? 'usage' : error instanceof TallystickError ? error.code : 'unexpected'
    context.say(JSON.stringify({ error: { code, message: messageOf(error), exitCode } }))
  } else if (wrongUse) {
    const help = commandLine(context.programName, ...(verb === undefined ? [] : [verb]), '--help')
    context.say(`${error.message}\nSee what it takes: ${help}`)
  } else if (error instanceof TallystickError) context.say(`error: ${error.message}`)
  else context.say(error instanceof Error ? (error.stack ?? error.message) : `error: ${String(error)}`)
  return exitCode
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
