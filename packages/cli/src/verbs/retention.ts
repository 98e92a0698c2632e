import { existsSync } from 'node:fs'
import { applyRetention, redact, type RetentionReport } from '@tallystick/ledger'
import { sqliteKeyring } from '@tallystick/ledger/sqlite'
import type { Command } from 'commander'
import { ageMs, eventNumbers, filledText, onLedger } from '../command/arguments.ts'
import { type CommandContext, commandLine } from '../command/context.ts'
import { CommandError, type ExitCode, exitCodes } from '../command/exit-code.ts'
import { withProgress } from '../command/progress.ts'
import { counted } from '../command/text.ts'
import { accountName } from '../drive/decide-call.ts'
import { findRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import type { Done } from '../verbs.ts'

/** What `redact` was given. */
export interface RedactOptions {
  readonly ledger: string
  readonly run: string
  readonly events?: readonly number[]
  readonly all?: boolean
  readonly by?: string
  readonly reason: string
}

/** Declares what `redact` takes. */
export function declareRedact(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, 'remove the content of events of a run; who removed it and why is recorded')
    .argument('<run>', 'id of the run')
    .option('--events <seqs>', 'these events, such as 4 or 4,7-9', eventNumbers)
    .option('--all', 'every event of the run')
    .option('--by <name>', 'who removes it (default: the name of your account)', filledText)
    .requiredOption('--reason <text>', 'why; it is recorded, so it must not repeat the content')
    .action(async (ledger: string, run: string, options: Omit<RedactOptions, 'ledger' | 'run'>) => {
      done(await redactEvents(context, { ledger, run, ...options }))
    })
}

/** `redact`: takes away what events of a run said. Their facts stay, and so does who took the rest away, and why. */
export function redactEvents(
  { json, print, say, programName }: CommandContext,
  { ledger: ledgerPath, run, events, all = false, by = accountName(), reason }: RedactOptions,
): Promise<ExitCode> {
  if ((events === undefined) !== all) {
    throw new CommandError('usage', 'What is to be taken away? Give either --events SEQS or --all.')
  }
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const runId = await findRun(ledger, run, { programName, ledgerPath })
    const removed = await redact(ledger, runId, events ?? 'all', { by, reason })
    if (json) await print(`${JSON.stringify({ runId, removed, by, reason })}\n`)
    else {
      const verify = commandLine(programName, 'verify', ledgerPath)
      say(
        removed === 0
          ? `Nothing of that was left in run ${runId}.`
          : `What ${counted(removed, 'event')} of run ${runId} said is gone, for good. See what is missing: ${verify}`,
      )
    }
    return exitCodes.ok
  })
}

/** What `erase` was given. */
export interface EraseOptions {
  /** File of the keyring. */
  readonly keys: string
  readonly subject: string
}

/** Declares what `erase` takes. */
export function declareErase(verb: Command, context: CommandContext, done: Done): void {
  verb
    .description(
      'destroy the keys of a subject, so that the content of its runs is unreadable in every copy of a ledger',
    )
    .argument('<keys>', 'file of the keyring')
    .argument('<subject>', 'the subject, as its runs name it')
    .option('--json', 'print JSON; errors too, on stderr')
    .action(async (keys: string, subject: string) => {
      done(await erase(context, { keys, subject }))
    })
}

/** `erase`: destroys the keys of a subject. What was sealed with them is gone, in ledgers and in their backups. */
export async function erase(
  { json, print, say }: CommandContext,
  { keys: path, subject }: EraseOptions,
): Promise<ExitCode> {
  if (!existsSync(path)) throw new CommandError('not_found', `There is no keyring at ${path}. Name its file.`)
  const keyring = sqliteKeyring(path)
  try {
    const destroyed = await keyring.destroy(subject)
    if (json) await print(`${JSON.stringify({ subject, destroyed })}\n`)
    else if (destroyed.length > 0) {
      say(
        `Destroyed ${counted(destroyed.length, 'key')} of ${subject}. Copies of ${path} are yours to destroy.`,
      )
    }
    if (destroyed.length > 0) return exitCodes.ok
  } finally {
    keyring.close()
  }
  throw new CommandError(
    'not_found',
    `The keyring has no key of ${subject}: nothing was sealed for it, or it was erased. Look at how the subject is spelled.`,
  )
}

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
