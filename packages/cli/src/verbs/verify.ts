import type { Ledger, RunId } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import {
  type BrokenPlace,
  type CheckpointFault,
  type CheckpointsVerdict,
  type RunVerdict,
  type StoreVerdict,
  verifyCheckpoints,
  type VerifyCheckpointsOptions,
  verifyLedger,
  verifyRun,
  writeCheckpoint,
} from '@tallystick/ledger'
import { type Command, Option } from 'commander'
import { onLedger, readGiven } from '../command/arguments.ts'
import { type CommandContext, commandLine } from '../command/context.ts'
import { CommandError, type ExitCode, exitCodes } from '../command/exit-code.ts'
import { type Progress, withProgress } from '../command/progress.ts'
import { counted } from '../command/text.ts'
import { findRun } from '../runs/find-run.ts'
import { countEvents, withLedger } from '../runs/open-ledger.ts'
import type { Paint } from '../terminal/paint.ts'
import type { Done } from '../verbs.ts'

/** What `verify` was given. */
export interface VerifyOptions {
  readonly ledger: string
  /** The one run to verify; without, every run and the store around them. */
  readonly run?: string
  /** File of signed checkpoints. */
  readonly checkpoints?: string
  /** File of the key that verifies them. */
  readonly publicKey?: string
  readonly origin?: string
}

type Verdicts = AsyncIterable<RunVerdict | StoreVerdict>

/** Declares what `verify` takes. */
export function declareVerify(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb)
    .addOption(new Option('--run <run>', 'only this run').conflicts('checkpoints'))
    .option('--checkpoints <file>', 'also compare the ledger with these signed checkpoints')
    .option('--public-key <file>', 'public key of the signer: PEM, or the one-line form of signed notes')
    .option('--origin <name>', 'origin that the checkpoints must have')
    .action(async (ledger: string, options: Omit<VerifyOptions, 'ledger'>) => {
      done(await verify(context, { ledger, ...options }))
    })
}

/**
 * `verify`: a line a run, one for the whole ledger, and one for the checkpoints where there are some. Exit code 4 where
 * anything is not what was written, or not what was signed; 1 where only a snapshot or a projection differs.
 */
export function verify(context: CommandContext, options: VerifyOptions): Promise<ExitCode> {
  const { json, paint, print, programName } = context
  const { ledger: ledgerPath, run } = options
  const signed = checkpointsOf(options)
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const one = run === undefined ? undefined : await findRun(ledger, run, { programName, ledgerPath })
    const verdict = signed && (await verifyCheckpoints(ledger, signed))
    const signedEvents = signedBy(verdict)
    const verdicts: Verdicts = one === undefined ? verifyLedger(ledger) : only(verifyRun(ledger, one))
    const found = await withProgress(
      context,
      () => eventsOf(ledger, one),
      (progress) => printVerdicts(progress, verdicts, signedEvents),
    )
    if (verdict) await print(`${json ? JSON.stringify(verdict) : checkpointsText(verdict, paint)}\n`)
    const sound = found.sound && verdict?.ok !== false
    if (!json) printNextCommands(context, { ...found, sound, ledgerPath, signedEvents })
    if (!sound) return exitCodes.damaged
    return found.differs ? exitCodes.failed : exitCodes.ok
  })
}

async function eventsOf(ledger: Ledger, runId: RunId | undefined): Promise<number> {
  return runId === undefined ? await countEvents(ledger) : ((await ledger.head(runId))?.seq ?? 0)
}

/** How many events a valid signature covers. */
function signedBy(verdict: CheckpointsVerdict | undefined): number {
  return verdict?.ok === true ? verdict.events : 0
}

async function* only<T>(item: Promise<T>): AsyncGenerator<T> {
  yield await item
}

/** What the verdicts come to. */
interface Found {
  readonly sound: boolean
  /** The first run that is damaged. */
  readonly broken?: BrokenPlace
  /** Whether what was derived from events is not what they say. */
  readonly differs: boolean
  /** Sound events. */
  readonly events: number
}

/** What no chain of hashes can find. */
const unsignedText =
  'Events that no checkpoint signs are not protected: a process that may write the file can have cut off the last ' +
  'ones, or written all anew under a chain and a seal of their own. Only signed checkpoints, kept elsewhere, find ' +
  'that: see tallystick checkpoint --help.'

/** Prints a verdict a line. */
async function printVerdicts(
  { context, add }: Progress,
  verdicts: Verdicts,
  signedEvents: number,
): Promise<Found> {
  const { json, paint, print } = context
  let [sound, differs, events] = [true, false, 0]
  let broken: BrokenPlace | undefined
  for await (const verdict of verdicts) {
    sound &&= verdict.ok
    differs ||= verdict.differs !== undefined
    const reported = verdict.scope === 'store' ? { ...verdict, signedEvents } : verdict
    await print(`${json ? JSON.stringify(reported) : verdictText(reported, paint)}\n`)
    if (verdict.scope !== 'run') continue
    broken ??= verdict.broken
    events += verdict.events
    add(verdict.events)
  }
  return { sound, differs, events, ...omitUndefined({ broken }) }
}

/** What to do about a ledger that is not what was written, or about what was derived from it. */
function printNextCommands(
  { programName, say }: CommandContext,
  {
    sound,
    broken,
    differs,
    events,
    ledgerPath,
    signedEvents,
  }: Found & {
    readonly ledgerPath: string
    readonly signedEvents: number
  },
): void {
  const command = (...words: readonly string[]): string => `  ${commandLine(programName, ...words)}\n`
  if (sound && differs) {
    const rebuild = command('rebuild', ledgerPath)
    say(
      `Every event is what was written; what was derived from some is not. This derives it anew:\n${rebuild.trimEnd()}`,
    )
  }
  if (sound && signedEvents < events) say(unsignedText)
  if (sound) return
  const seq = (broken?.seq ?? 1) - 1
  const before =
    broken === undefined || seq < 1 ? [] : [command('show', ledgerPath, broken.runId, '--at', `${seq}`)]
  const file = 'sound.jsonl'
  say(
    'This ledger is not what was written. Keep it as it is, so that it can be examined, and continue with an earlier copy.\n' +
      (before.length > 0 ? `The damaged run as it was after its last sound event:\n${before.join('')}` : '') +
      'What can still be read, into a ledger of its own:\n' +
      `  ${commandLine(programName, 'export', ledgerPath)} > ${file}\n` +
      command('import', 'sound.db', file).trimEnd(),
  )
}

function checkpointsOf({
  checkpoints: file,
  publicKey,
  origin,
}: VerifyOptions): VerifyCheckpointsOptions | undefined {
  if (file === undefined && publicKey === undefined) return undefined
  if (file === undefined || publicKey === undefined) {
    throw new CommandError(
      'usage',
      'Checkpoints are verified with the public key of the signer: give both --checkpoints FILE and --public-key FILE.',
    )
  }
  return { file, publicKey: readGiven(publicKey), ...(origin !== undefined && { origin }) }
}

function checkpointsText(
  { ok, checkpoints, runs, events, broken }: CheckpointsVerdict,
  paint: Paint,
): string {
  const found = [counted(checkpoints, 'checkpoint'), counted(runs, 'run'), counted(events, 'event')].join(
    ', ',
  )
  if (ok) return `checkpoints  ${paint('green', 'ok')}  ${found} as signed`
  return broken
    .map((place) => `${placeText(place)}  ${paint('red', 'NOT AS SIGNED')}  ${faultText(place)}`)
    .join('\n')
}

function placeText({ runId, checkpoint }: CheckpointFault): string {
  return runId ?? `checkpoint ${checkpoint}`
}

function faultText({ seq, checkpoint, what, expected, found }: CheckpointFault): string {
  const place = seq === undefined ? '' : `at event ${seq}, by checkpoint ${checkpoint}: `
  return `${place}${what} should be ${expected}, is ${found}`
}

type ReportedVerdict = RunVerdict | (StoreVerdict & { readonly signedEvents: number })

function verdictText(verdict: ReportedVerdict, paint: Paint): string {
  const name = verdict.scope === 'run' ? verdict.runId : 'ledger'
  const counts = verdict.scope === 'run' ? [] : [counted(verdict.runs, 'run')]
  const found = [...counts, counted(verdict.events, 'event')].join(', ')
  if (verdict.ok) {
    const signed = verdict.scope === 'store' ? `, ${verdict.signedEvents} of them signed` : ''
    return `${name}  ${paint('green', 'ok')}  ${found}${signed}${missingText(verdict)}${differsText(verdict, paint)}`
  }
  return `${name}  ${paint('red', 'DAMAGED')}  ${damageText(verdict)}, ${found} sound`
}

/** Faults of projections are reported apart from those of events: projections can be made anew. */
function differsText(verdict: RunVerdict | StoreVerdict, paint: Paint): string {
  if (verdict.differs === undefined) return ''
  const { what, expected, found } = verdict.differs
  const of = verdict.scope === 'run' ? ` of run ${verdict.runId}` : ''
  return `; ${paint('yellow', `${what}${of} differs`)}: should be ${expected}, is ${found}`
}

/** What is not there any more, and why. */
function missingText(verdict: RunVerdict | StoreVerdict): string {
  if (verdict.scope === 'store') {
    return verdict.droppedRuns === 0 ? '' : `; ${counted(verdict.droppedRuns, 'run')} dropped, on record`
  }
  return (verdict.missing ?? [])
    .map(({ kind, by, reason, events }) => {
      const who = by === undefined ? '' : ` by ${by}`
      return `; the content of ${counted(events, 'event')} is ${kind}${who}${reason === undefined ? '' : ` (${reason})`}`
    })
    .join('')
}

function damageText(verdict: RunVerdict | StoreVerdict): string {
  if (verdict.scope === 'store' && verdict.broken === undefined)
    return counted(verdict.brokenRuns, 'damaged run')
  const place =
    verdict.scope === 'run' && verdict.broken !== undefined ? `at event ${verdict.broken.seq}: ` : ''
  const { what = '', expected = '', found = '' } = verdict.broken ?? {}
  return `${place}${what} should be ${expected}, is ${found}`
}

/** What `checkpoint` was given. */
export interface CheckpointVerbOptions {
  readonly ledger: string
  /** Where the checkpoints are kept. */
  readonly out: string
  /** File of the key that signs. */
  readonly key: string
  readonly origin: string
}

/** Declares what `checkpoint` takes. */
export function declareCheckpoint(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, 'sign where every run ends now, so that verify detects a rewritten history')
    .requiredOption('--out <file>', 'the file that the checkpoint is appended to')
    .requiredOption('--key <file>', 'private Ed25519 key, as PEM')
    .requiredOption(
      '--origin <name>',
      'name of the ledger for those who verify it, such as example.com/agents',
    )
    .action(async (ledger: string, options: { out: string; key: string; origin: string }) => {
      done(await checkpoint(context, { ledger, ...options }))
    })
}

/** `checkpoint`: signs where every run ends now. Prints the signed note; keep it in a place that cannot be changed. */
export function checkpoint(
  { json, print, say }: CommandContext,
  { ledger: ledgerPath, out, key, origin }: CheckpointVerbOptions,
): Promise<ExitCode> {
  const signer = { file: out, key: readGiven(key), origin }
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const made = await writeCheckpoint(ledger, signer)
    if (json) await print(`${JSON.stringify(made)}\n`)
    else {
      const news =
        made.added === 0
          ? 'Nothing has changed since the last checkpoint'
          : `Signed ${counted(made.added, 'head')} more`
      say(
        `${news}; ${out} covers ${counted(made.size, 'head')}. Keep a copy of this where no writer of the ledger can change it:`,
      )
      await print(made.note)
    }
    return exitCodes.ok
  })
}
