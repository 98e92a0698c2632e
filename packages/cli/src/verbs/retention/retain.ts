import { applyRetention, type RetentionReport } from '@tallystick/ledger'
import type { CommandContext } from '../../command/command-context.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { exitCodes } from '../../command/exit-code.ts'
import { withLedger } from '../../ledger/open-ledger.ts'
import { withProgress } from '../../view/text/progress.ts'
import { counted } from '../../view/text/run-ending.ts'
import type { Command } from 'commander'
import { onLedger } from '../../command/declare-verb.ts'
import type { Done } from '../../verbs.ts'
import { ageMs, filledText } from '../../command/parse-args.ts'

/** What `retain` was given; ages in milliseconds. */
export interface RetainOptions {
  readonly ledger: string
  readonly deltas?: number
  readonly content?: number
  readonly facts?: number
  readonly by: string
  readonly reason?: string
  readonly dryRun?: boolean
}

/** Declares what `retain` takes. */
export function declareRetain(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, 'remove content that is older than given ages, from runs that have ended')
    .option(
      '--deltas <age>',
      'pieces of what was streamed, such as 1d; the finished messages keep their text',
      ageMs,
    )
    .option('--content <age>', 'messages, inputs and results, such as 90d; facts stay', ageMs)
    .option('--facts <age>', 'whole runs, such as 2y', ageMs)
    .option('--by <name>', 'recorded as who removed it', filledText, 'retention')
    .option('--reason <text>', 'recorded as why')
    .option('--dry-run', 'count only; remove nothing')
    .action(async (ledger: string, options: Omit<RetainOptions, 'ledger'>) => {
      done(await retain(context, { ledger, ...options }))
    })
}

/** `retain`: takes away what is older than the ages allow, and says how much that was. */
export function retain(given: CommandContext, options: RetainOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, deltas, content, facts, by, reason, dryRun = false } = options
  const ages = {
    ...(deltas !== undefined && { deltasMs: deltas }),
    ...(content !== undefined && { contentMs: content }),
    ...(facts !== undefined && { factsMs: facts }),
  }
  const unknown = (): Promise<number> =>
    Promise.reject(new Error('The number of events is not known before the end.'))
  return withLedger(ledgerPath, dryRun ? 'read' : 'write', (ledger) =>
    withProgress(given, unknown, async ({ add, context }) => {
      let seen = 0
      const report = await applyRetention(ledger, ages, {
        now: given.now(),
        by,
        dryRun,
        ...(reason !== undefined && { reason }),
        onProgress(soFar) {
          add(total(soFar) - seen)
          seen = total(soFar)
        },
      })
      if (given.json) await context.print(`${JSON.stringify({ dryRun, ...report })}\n`)
      else context.say(reportText(report, dryRun))
      return exitCodes.ok
    }),
  )
}

function total({ deltas, content, events }: RetentionReport): number {
  return deltas + content + events
}

function reportText({ deltas, content, runs, events }: RetentionReport, dryRun: boolean): string {
  const what = [
    ...(deltas > 0 ? [counted(deltas, 'delta')] : []),
    ...(content > 0 ? [`what ${counted(content, 'event')} said`] : []),
    ...(runs > 0 ? [`${counted(runs, 'run')} with ${counted(events, 'event')}`] : []),
  ]
  if (what.length === 0) return 'Nothing is older than that.'
  return `${dryRun ? 'Would take' : 'Took'} away: ${what.join('; ')}.`
}
