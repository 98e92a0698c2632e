import { existsSync } from 'node:fs'
import { omitUndefined } from '@tallystick/core/internal'
import { applyRetention, redact, type RetentionReport } from '@tallystick/ledger'
import { sqliteKeyring } from '@tallystick/ledger/sqlite'
import type { Command } from '@commander-js/extra-typings'
import {
  readAccountName,
  parseAge,
  parseEventNumbers,
  parseFilled,
  declareLedger,
  declareRunArguments,
} from '../command/arguments.ts'
import { type CommandContext, formatCommand, printJson } from '../command/context.ts'
import { CommandError } from '../command/exit-code.ts'
import { withProgress } from '../command/progress.ts'
import { formatCount } from '../command/text.ts'
import { withRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'

/** Declares `redact`. The facts of the events stay. */
export function declareRedact(verb: Command, context: CommandContext): void {
  declareRunArguments(verb, 'remove the content of events of a run; who removed it and why is recorded')
    .option('--events <seqs>', 'these events, such as 4 or 4,7-9', parseEventNumbers)
    .option('--all', 'every event of the run')
    .option('--by <name>', 'who removes it (default: the name of your account)', parseFilled)
    .requiredOption('--reason <text>', 'why; it is recorded, so it must not repeat the content')
    .action(async (ledgerPath, run, { events, all = false, by = readAccountName(), reason }) => {
      if ((events === undefined) !== all) {
        throw new CommandError('usage', 'What should be removed? Give either --events SEQS or --all.')
      }
      await withRun(context, { ledger: ledgerPath, run }, 'write', async (ledger, runId) => {
        const removed = await redact(ledger, runId, events ?? 'all', { by, reason })
        if (context.json) return await printJson(context, { runId, removed, by, reason })
        const verify = formatCommand(context.programName, 'verify', ledgerPath)
        context.say(
          removed === 0
            ? `Nothing of that was left in run ${runId}.`
            : `The content of ${formatCount(removed, 'event')} of run ${runId} is gone for good. See what is missing: ${verify}`,
        )
      })
    })
}

/** Declares `erase`. What was sealed with the keys is then unreadable, in ledgers and in their backups. */
export function declareErase(verb: Command, context: CommandContext): void {
  verb
    .description(
      'destroy the keys of a subject, so that the content of its runs is unreadable in every copy of a ledger',
    )
    .argument('<keys>', 'file of the keyring')
    .argument('<subject>', 'the subject, as its runs name it')
    .option('--json', 'print JSON; errors too, on stderr')
    .action(async (path, subject) => {
      if (!existsSync(path)) {
        throw new CommandError(
          'not_found',
          `There is no keyring at ${path}. Name the file that the runs were encrypted with.`,
        )
      }
      const keyring = sqliteKeyring(path)
      const destroyed = await keyring.destroy(subject).finally(() => keyring.close())
      if (context.json) await printJson(context, { subject, destroyed })
      if (destroyed.length === 0) {
        throw new CommandError(
          'not_found',
          `The keyring has no key of ${subject}: nothing was sealed for it, or it was erased. Check how the subject is spelled.`,
        )
      }
      if (context.json) return
      context.say(
        `Destroyed ${formatCount(destroyed.length, 'key')} of ${subject}. Copies of ${path} are yours to destroy.`,
      )
    })
}

export function declareRetain(verb: Command, context: CommandContext): void {
  declareLedger(verb, 'remove content that is older than given ages, from runs that have ended')
    .option(
      '--deltas <age>',
      'streamed deltas older than this, such as 1d; finished messages keep their text',
      parseAge,
    )
    .option(
      '--content <age>',
      'messages, inputs and results older than this, such as 90d; facts stay',
      parseAge,
    )
    .option('--facts <age>', 'whole runs older than this, such as 2y', parseAge)
    .option('--by <name>', 'recorded as who removed it', parseFilled, 'retention')
    .option('--reason <text>', 'recorded as why')
    .option('--dry-run', 'count only; remove nothing')
    .action(async (ledgerPath, { deltas, content, facts, by, reason, dryRun = false }) => {
      if (deltas === undefined && content === undefined && facts === undefined) {
        throw new CommandError(
          'usage',
          'What should be removed? Give at least one of --deltas, --content and --facts with an age, such as --content 90d.',
        )
      }
      const ages = omitUndefined({ deltasMs: deltas, contentMs: content, factsMs: facts })
      await withLedger(ledgerPath, dryRun ? 'read' : 'write', (ledger) =>
        withProgress(
          context,
          async () => undefined,
          async ({ add, context: aside }) => {
            let seen = 0
            const report = await applyRetention(ledger, ages, {
              now: context.now(),
              by,
              dryRun,
              ...omitUndefined({ reason }),
              onProgress(removed) {
                const total = removed.deltas + removed.content + removed.events
                add(total - seen)
                seen = total
              },
            })
            if (context.json) await printJson(aside, { dryRun, ...report })
            else aside.say(formatReport(report, dryRun))
          },
        ),
      )
    })
}

function formatReport({ deltas, content, runs, events }: RetentionReport, dryRun: boolean): string {
  const what = [
    ...(deltas > 0 ? [formatCount(deltas, 'delta')] : []),
    ...(content > 0 ? [`the content of ${formatCount(content, 'event')}`] : []),
    ...(runs > 0 ? [`${formatCount(runs, 'run')} with ${formatCount(events, 'event')}`] : []),
  ]
  if (what.length === 0) return 'Nothing is older than that.'
  return `${dryRun ? 'Would remove' : 'Removed'}: ${what.join('; ')}.`
}
