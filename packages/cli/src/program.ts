import { CommanderError } from 'commander'
import { TallystickError } from '@tallystick/core'
import type { CommandContext, CommandHost } from './command-context.ts'
import { processContext } from './command-context.ts'
import { commandTree } from './command-tree.ts'
import type { ExitCode } from './exit-code.ts'
import { exitCodeOf, exitCodes } from './exit-code.ts'

/** Runs the command line and answers its exit code. Never rejects: what goes wrong is on stderr. */
export async function runCommandLine(
  words: readonly string[],
  host: CommandHost = process,
): Promise<ExitCode> {
  const context = processContext(words.includes('--json'), host)
  let exitCode: ExitCode = exitCodes.ok
  const output = {
    writeOut: (text: string) => void host.stdout.write(text),
    writeErr: (text: string) => void host.stderr.write(text),
    // The message is printed once, by reportError.
    outputError: () => undefined,
  }
  const program = commandTree(context, output, (code) => (exitCode = code))
  try {
    await program.parseAsync(words, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.ok
    return reportError(context, error)
  }
}

function reportError({ json, say }: CommandContext, error: unknown): ExitCode {
  // No verb was named: the help is on stderr already, and is all that there is to say.
  if (error instanceof CommanderError && error.code === 'commander.help') return exitCodes.usage
  const wrongUse = error instanceof CommanderError
  const exitCode = wrongUse ? exitCodes.usage : exitCodeOf(error)
  const code = wrongUse ? 'usage' : error instanceof TallystickError ? error.code : 'unexpected'
  const message = error instanceof Error ? error.message : String(error)
  if (json) say(JSON.stringify({ error: { code, message, exitCode } }))
  else if (code === 'unexpected' && error instanceof Error) say(error.stack ?? message)
  else say(wrongUse ? message : `error: ${message}`)
  return exitCode
}
