import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { exitCodes } from '@tallystick/cli'
import type { ExitCode } from '@tallystick/cli'
import { claudeModelId, loopbackModelId } from './choose-model.ts'
import { defaultLedgerPath } from './demo-files.ts'

/** What the demo was asked for. */
export interface Options {
  readonly ledger: string
  readonly json: boolean
  readonly yes?: boolean
  readonly deny?: string
  readonly model?: string
}

/** Reads the words after the program's name; answers an exit code where help or an error was printed instead. */
export function readOptions(words: readonly string[]): Options | ExitCode {
  const program = new Command('demo')
    .description(
      'An agent finds the best seller of last month in a sales database, converts its revenue with a rate from an ' +
        'HTTP service, works out what to re-order, and places the order once someone has approved it.',
    )
    .option('--ledger <file>', 'where the run is recorded', nonEmpty, defaultLedgerPath)
    .addOption(new Option('--yes', 'approve the order').conflicts('deny'))
    .option('--deny <reason>', 'deny the order, for this reason')
    .option(
      '--model <id>',
      `a model of Anthropic's, or ${loopbackModelId} (default with a key: ${claudeModelId})`,
    )
    .option('--json', 'print one JSON object, as the last line; all else goes to stderr', false)
    .exitOverride()
  try {
    return program.parse(words, { from: 'user' }).opts<Options>()
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    throw error
  }
}

function nonEmpty(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It has to name a file.')
  return text
}
