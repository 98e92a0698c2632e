import { limitNames, type LimitName } from '@tallystick/core/vocabulary'
import { foldTo } from '@tallystick/ledger'
import type { CommandContext } from '../../command/command-context.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { CommandError, exitCodes } from '../../command/exit-code.ts'
import { findRun } from '../../lookup/find-run.ts'
import { accountName, acknowledge, putCommand } from '../../interactive/inbox.ts'
import { withLedger } from '../../ledger/open-ledger.ts'
import type { Command } from 'commander'
import { onLedger } from '../../command/declare-verb.ts'
import type { Done } from '../../verbs.ts'
import { filledText, positiveNumber } from '../../command/parse-args.ts'

/** What `raise` was given. */
export interface RaiseOptions {
  readonly ledger: string
  readonly run: string
  readonly limit: string
  readonly max: number
  readonly by?: string
  readonly reason?: string
}

/** Declares what `raise` takes. */
export function declareRaise(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb)
    .argument('<run>', 'id of the run')
    .argument('<limit>', 'name of the limit, such as maxTurns')
    .argument('<max>', 'the new maximum', positiveNumber)
    .option('--by <name>', 'who raises it (default: the name of your account)', filledText)
    .option('--reason <text>', 'why, for the record')
    .action(async (ledger: string, ...rest: [string, string, number, { by?: string; reason?: string }]) => {
      const [run, limit, max, options] = rest
      done(await raise(context, { ledger, run, limit, max, ...options }))
    })
}

/** `raise`: leaves a higher limit in the run's inbox. `resume` continues a run that is suspended at it. */
export function raise(context: CommandContext, options: RaiseOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, run, limit, max, by = accountName(), reason } = options
  if (!isLimit(limit)) {
    throw new CommandError('usage', `There is no limit ${limit}. Use one of: ${limitNames.join(', ')}.`)
  }
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const runId = await findRun(ledger, run, { programName: context.programName, ledgerPath })
    const { limits, ...state } = await foldTo(ledger, runId)
    if (state.phase === 'done') {
      throw new CommandError(
        'refused',
        `Run ${runId} is done (${state.reason}), so no limit applies any more. To continue after its end, start a run of its session, or fork it.`,
      )
    }
    const present = limits[limit]
    if (present === undefined || max <= present) {
      const now = present === undefined ? 'has no such limit' : `has ${limit} ${present} already`
      throw new CommandError(
        'refused',
        `Run ${runId} ${now}, so ${max} would not raise it. ${present === undefined ? 'What is not set needs no raise.' : 'Give more.'}`,
      )
    }
    const why = reason === undefined ? {} : { reason }
    const command = { type: 'raise_limit' as const, limit, max, by, ...why }
    const added = await putCommand(ledger, runId, command)
    await acknowledge(context, { ledger, ledgerPath, runId, command, added })
    return exitCodes.ok
  })
}

function isLimit(name: string): name is LimitName {
  return (limitNames as readonly string[]).includes(name)
}
