import { omitUndefined } from '@tallystick/core/internal'
import {
  type BrokenPlace,
  type CheckpointsVerdict,
  type RunVerdict,
  type StoreVerdict,
  verifyCheckpoints,
  verifyLedger,
  verifyRun,
  writeCheckpoint,
} from '@tallystick/ledger'
import type { Command } from '@commander-js/extra-typings'
import {
  declareLedger,
  originHelp,
  publicKeyHelp,
  readCheckpointOptions,
  readGiven,
} from '../command/arguments.ts'
import { type CommandContext, formatCommand, printEither } from '../command/context.ts'
import { exitCodes } from '../command/exit-code.ts'
import { type Progress, withProgress } from '../command/progress.ts'
import { formatCount, formatTime } from '../command/text.ts'
import { findRun } from '../runs/find-run.ts'
import { countEvents, withLedger } from '../runs/open-ledger.ts'
import type { Paint } from '../terminal/paint.ts'
import type { Done } from '../verbs.ts'

/**
 * Declares `verify`: a line for each run, one for the whole ledger, and one for the checkpoints. Exit code 4 if anything is not what
 * was written or signed; 1 if only a snapshot or a projection differs.
 */
export function declareVerify(verb: Command, context: CommandContext, done: Done): void {
  declareLedger(verb)
    .option('--run <run>', 'only this run')
    .option('--checkpoints <file>', 'also compare the ledger with these signed checkpoints')
    .option('--public-key <file>', publicKeyHelp)
    .option('--origin <name>', originHelp)
    .action(async (ledgerPath, { run, ...given }) => {
      const { paint, programName } = context
      const signed = readCheckpointOptions(given)
      const exitCode = await withLedger(ledgerPath, 'read', async (ledger) => {
        const one = run === undefined ? undefined : await findRun(ledger, run, { programName, ledgerPath })
        const verdict = signed
          ? await verifyCheckpoints(ledger, { ...signed, ...omitUndefined({ runId: one }) })
          : undefined
        /** The events that a valid signature covers. */
        const signedEvents = verdict?.ok === true ? verdict.events : 0
        const verdicts = one === undefined ? verifyLedger(ledger) : [await verifyRun(ledger, one)]
        const found = await withProgress(
          context,
          () => countEvents(ledger, one),
          (progress) => printVerdicts(progress, verdicts, signedEvents),
        )
        if (verdict) await printEither(context, verdict, `${formatCheckpoints(verdict, paint)}\n`)
        const sound = found.sound && verdict?.ok !== false
        const advice =
          found.sound && verdict?.broken.length && verdict.broken.every(({ runId }) => runId === undefined)
            ? unfitText
            : formatAdvice(programName, { ...found, sound, ledgerPath, signedEvents })
        if (!context.json && advice !== '') context.say(advice)
        if (!sound) return exitCodes.damaged
        return found.differs ? exitCodes.failed : exitCodes.ok
      })
      done(exitCode)
    })
}

interface Found {
  readonly sound: boolean
  /** The first damage, and the last event of its run before that. */
  readonly broken?: BrokenPlace & { readonly lastSoundSeq: number }
  /** True if something that was derived from the events does not match them. */
  readonly differs: boolean
  /** Sound events. */
  readonly events: number
}

/** No chain of hashes can find this. */
const unsignedText =
  'Events that no checkpoint signs are not protected: a process that may write the file can have cut off the last ' +
  'ones, or written everything anew under a chain and a seal of its own. Only signed checkpoints, kept elsewhere, ' +
  'reveal that: see tallystick checkpoint --help.'

/** The checkpoints themselves are at fault, so they say nothing about the ledger. */
const unfitText =
  'No fault was found in the ledger itself, but these checkpoints say nothing about it: another key or origin signed ' +
  'them, or their file has changed. Compare the key and the origin with those of the signer, and the file with your ' +
  'copy of the checkpoints.'

async function printVerdicts(
  { context, add }: Progress,
  verdicts: AsyncIterable<RunVerdict | StoreVerdict> | Iterable<RunVerdict | StoreVerdict>,
  signedEvents: number,
): Promise<Found> {
  let [sound, differs, events] = [true, false, 0]
  let broken: Found['broken']
  for await (const verdict of verdicts) {
    sound &&= verdict.ok
    differs ||= verdict.differs !== undefined
    const reported = verdict.scope === 'store' ? { ...verdict, signedEvents } : verdict
    await printEither(context, reported, `${formatVerdict(reported, context.paint)}\n`)
    if (verdict.scope !== 'run') continue
    // A run's row and its inbox are at fault after the last event, which is sound.
    if (verdict.broken) {
      const { seq } = verdict.broken
      broken ??= { ...verdict.broken, lastSoundSeq: seq === verdict.events ? seq : seq - 1 }
    }
    events += verdict.events
    add(verdict.events)
  }
  return { sound, differs, events, ...omitUndefined({ broken }) }
}

/** Says what to do about damage, or about wrong derived data. */
function formatAdvice(
  programName: string,
  found: Found & { readonly ledgerPath: string; readonly signedEvents: number },
): string {
  const { sound, broken, differs, events, ledgerPath, signedEvents } = found
  const command = (...words: readonly string[]): string => `  ${formatCommand(programName, ...words)}`
  if (sound) {
    return [
      ...(differs
        ? [
            'Every event is what was written; what was derived from some is not. This derives it anew:',
            command('rebuild', ledgerPath),
          ]
        : []),
      ...(signedEvents < events ? [unsignedText] : []),
    ].join('\n')
  }
  return [
    'This ledger is not what was written. Keep it as it is, so that it can be examined, and continue with an earlier copy.',
    ...(broken === undefined || broken.lastSoundSeq < 1
      ? []
      : [
          'The damaged run as it was after its last sound event:',
          command('show', ledgerPath, broken.runId, '--at', `${broken.lastSoundSeq}`),
        ]),
    'What can still be read, into a ledger of its own:',
    `${command('export', ledgerPath)} > sound.jsonl`,
    command('import', 'sound.db', 'sound.jsonl'),
  ].join('\n')
}

function formatCheckpoints(
  { ok, checkpoints, runs, events, broken }: CheckpointsVerdict,
  paint: Paint,
): string {
  const found = [
    formatCount(checkpoints, 'checkpoint'),
    formatCount(runs, 'run'),
    formatCount(events, 'event'),
  ].join(', ')
  if (ok) return `checkpoints  ${paint('green', 'ok')}  ${found} as signed`
  return broken
    .map(({ runId, seq, checkpoint, what, expected, found: is }) => {
      const place = seq === undefined ? '' : `at event ${seq}, by checkpoint ${checkpoint}: `
      const fault = `${place}${what} should be ${expected}, is ${is}`
      return `${runId ?? `checkpoint ${checkpoint}`}  ${paint('red', 'NOT AS SIGNED')}  ${fault}`
    })
    .join('\n')
}

type ReportedVerdict = RunVerdict | (StoreVerdict & { readonly signedEvents: number })

function formatVerdict(verdict: ReportedVerdict, paint: Paint): string {
  const name = verdict.scope === 'run' ? verdict.runId : 'ledger'
  const counts = verdict.scope === 'run' ? [] : [formatCount(verdict.runs, 'run')]
  const found = [...counts, formatCount(verdict.events, 'event')].join(', ')
  if (verdict.ok) {
    const signed = verdict.scope === 'store' ? `, ${verdict.signedEvents} of them signed` : ''
    const origin =
      verdict.scope === 'run' && verdict.imported
        ? `; imported by ${verdict.imported.by}, ${formatTime(verdict.imported.at)}`
        : ''
    return `${name}  ${paint('green', 'ok')}  ${found}${signed}${origin}${formatMissing(verdict)}${formatDifference(verdict, paint)}`
  }
  return `${name}  ${paint('red', 'DAMAGED')}  ${formatDamage(verdict)}, ${found} sound`
}

/** Faults of projections are reported apart from those of events: projections can be made again. */
function formatDifference(verdict: RunVerdict | StoreVerdict, paint: Paint): string {
  if (verdict.differs === undefined) return ''
  const { what, expected, found } = verdict.differs
  const of = verdict.scope === 'run' ? ` of run ${verdict.runId}` : ''
  return `; ${paint('yellow', `${what}${of} differs`)}: should be ${expected}, is ${found}`
}

/** The removed content, and why it was removed. */
function formatMissing(verdict: RunVerdict | StoreVerdict): string {
  if (verdict.scope === 'store') {
    return verdict.droppedRuns === 0 ? '' : `; ${formatCount(verdict.droppedRuns, 'run')} dropped, on record`
  }
  return (verdict.missing ?? [])
    .map(({ kind, by, reason, events }) => {
      const who = by === undefined ? '' : ` by ${by}`
      return `; the content of ${formatCount(events, 'event')} is ${kind}${who}${reason === undefined ? '' : ` (${reason})`}`
    })
    .join('')
}

function formatDamage(verdict: RunVerdict | StoreVerdict): string {
  if (verdict.scope === 'store' && verdict.broken === undefined)
    return formatCount(verdict.brokenRuns, 'damaged run')
  const place =
    verdict.scope === 'run' && verdict.broken !== undefined ? `at event ${verdict.broken.seq}: ` : ''
  const { what = '', expected = '', found = '' } = verdict.broken ?? {}
  return `${place}${what} should be ${expected}, is ${found}`
}

/** Declares `checkpoint`. It prints the signed note, for a place that no writer of the ledger can change. */
export function declareCheckpoint(verb: Command, context: CommandContext): void {
  declareLedger(verb, 'sign where every run ends now, so that verify detects a rewritten history')
    .requiredOption('--out <file>', 'the file that the checkpoint is appended to')
    .requiredOption('--key <file>', 'private Ed25519 key, as PEM')
    .requiredOption(
      '--origin <name>',
      'name of the ledger for those who verify it, such as example.com/agents',
    )
    .action(async (ledgerPath, { out, key, origin }) => {
      const signer = { file: out, key: readGiven(key), origin }
      const made = await withLedger(ledgerPath, 'read', (ledger) => writeCheckpoint(ledger, signer))
      const news =
        made.added === 0
          ? 'Nothing has changed since the last checkpoint'
          : `Signed ${formatCount(made.added, 'head')} more`
      if (!context.json) {
        context.say(
          `${news}; ${out} covers ${formatCount(made.size, 'head')}. Keep a copy of this where no writer of the ledger can change it:`,
        )
      }
      await printEither(context, made, made.note)
    })
}
