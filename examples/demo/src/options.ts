import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { exitCodes } from '@tallystick/cli'
import type { ExitCode } from '@tallystick/cli'
import { claudeModelId, loopbackModelId } from './choose-model.ts'
import { defaultLedgerPath } from './demo-files.ts'

/** Options of the command line. */
export interface Options {
  readonly ledger: string
  readonly json: boolean
  readonly yes?: boolean
  readonly deny?: string
  readonly model?: string
  /** Serves a page to chat with the agent, instead of running one task. */
  readonly serve: boolean
  readonly port: number
  /** Drives the run by two worker processes on this engine. */
  readonly engine?: 'pg-boss'
}

/** Reads the arguments; returns an exit code if it printed help or an error instead. */
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
    .option('--json', 'print one JSON object as the last line; everything else goes to stderr', false)
    .addOption(
      new Option('--serve', 'serve a page to chat with the agent, until Ctrl-C')
        .conflicts(['yes', 'deny', 'json'])
        .default(false),
    )
    .addOption(
      new Option('--engine <name>', 'drive the run by two workers on an engine, of which one is killed')
        .choices(['pg-boss'])
        .conflicts(['serve', 'json', 'ledger']),
    )
    .option('--port <number>', 'where --serve listens (default: a free port)', portNumber, 0)
    .exitOverride()
  try {
    return program.parse(words, { from: 'user' }).opts<Options>()
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    throw error
  }
}

function portNumber(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new InvalidArgumentError('It must be a port: 1 to 65535, or 0 for a free one.')
}

function nonEmpty(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It has to name a file.')
  return text
}
