import { dirname, relative, resolve, sep } from 'node:path'
import { exportRegression } from '@tallystick/replay'
import type { CommandContext } from '../../command/command-context.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { CommandError, exitCodes } from '../../command/exit-code.ts'
import { findRun } from '../../lookup/find-run.ts'
import { configPath } from '../../config/find-config.ts'
import { withLedger } from '../../ledger/open-ledger.ts'
import { counted } from '../../view/text/run-ending.ts'
import type { Command } from 'commander'
import { onLedger } from '../../command/declare-verb.ts'
import type { Done } from '../../verbs.ts'

/** What `regression` was given. */
export interface RegressionVerbOptions {
  readonly ledger: string
  readonly run: string
  /** The test file to write. */
  readonly out: string
  readonly config?: string
  /** Lets the test take the definitions of the agents from the record. */
  readonly recordedDefinitions?: boolean
  /** Patterns of what else is a secret. */
  readonly redact?: readonly string[]
}

/** Declares what `regression` takes. */
export function declareRegression(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, "write a run as a test that vitest runs offline against today's agents")
    .argument('<run>', 'id of the run')
    .requiredOption('--out <file>', 'the test file to write; an export of the run goes beside it')
    .option('--config <file>', 'file that exports the agents (default: the nearest tallystick.config.ts)')
    .option('--redact <patterns...>', 'regular expressions of further secrets to mask')
    .option(
      '--recorded-definitions',
      'take instructions, tools and schemas from the record, so that only the behaviour of the code is tested',
    )
    .action(async (ledger: string, run: string, options: Omit<RegressionVerbOptions, 'ledger' | 'run'>) => {
      done(await regression(context, { ledger, run, ...options }))
    })
}

/** `regression`: writes a run as a test that vitest runs offline against today's agents, with its secrets masked. */
export function regression(context: CommandContext, options: RegressionVerbOptions): Promise<ExitCode> {
  const { json, print, programName, say, workingDirectory } = context
  const { ledger: ledgerPath, run, out, config, recordedDefinitions, redact = [] } = options
  const secrets = redact.map(patternOf)
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const runId = await findRun(ledger, run, { programName, ledgerPath })
    const source = configPath({ workingDirectory, ...(config !== undefined && { file: config }) })
    const file = resolve(workingDirectory, out)
    const from = importFrom(file, source)
    const definitions = recordedDefinitions === true ? 'recorded' : 'today'
    const written = await exportRegression(ledger, runId, { file, agents: { from }, secrets, definitions })
    if (json) await print(`${JSON.stringify(written)}\n`)
    else {
      const { test, fixture, events, redacted } = written
      await print(`${test}\n${fixture}\n`)
      say(
        `${counted(events, 'event')} of run ${runId}; secrets were masked in ${redacted} of them. ` +
          `Look at the fixture before you commit it, then run: npx vitest run ${out}`,
      )
    }
    return exitCodes.ok
  })
}

/** How a file imports another one by path. */
function importFrom(file: string, other: string): string {
  const path = relative(dirname(file), other).split(sep).join('/')
  return path.startsWith('.') ? path : `./${path}`
}

function patternOf(text: string): RegExp {
  try {
    return new RegExp(text)
  } catch (cause) {
    throw new CommandError(
      'usage',
      `--redact ${text} is no regular expression. Escape the characters that are meant literally.`,
      {
        cause,
      },
    )
  }
}
