import { createReadStream, statSync } from 'node:fs'
import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { evolve, type RunState, transcript } from '@tallystick/core/machine'
import {
  ExportedHistories,
  exportEvents,
  type ImportedRun,
  importEvents,
  type ImportReport,
  linesOf,
  rebuildProjections,
} from '@tallystick/ledger'
import { recordedSpans, type Span, toOtlp } from '@tallystick/otel'
import { toAgUi } from '@tallystick/server'
import { type Command, Option } from 'commander'
import { Subject } from 'rxjs'
import { onLedger } from '../command/arguments.ts'
import type { CommandContext } from '../command/context.ts'
import { CommandError, type ExitCode, exitCodes } from '../command/exit-code.ts'
import { bytesText, withProgress } from '../command/progress.ts'
import { counted } from '../command/text.ts'
import { findRun } from '../runs/find-run.ts'
import { countEvents, readEachRun, runsFromTheFirst, withLedger } from '../runs/open-ledger.ts'
import type { Done } from '../verbs.ts'

/** What `export` prints of a run beside its events: spans, what a chat is shown, and what the model is shown. */
const viewFormats = ['otlp', 'agui', 'messages'] as const
type ViewFormat = (typeof viewFormats)[number]

/** Which run a view is of, and whether it includes the child runs. */
export interface ViewedRun {
  readonly runId: RunId
  readonly withChildren: boolean
}

/** Returns a run in a format, as lines of JSON. */
export function viewLines(ledger: Ledger, format: ViewFormat, run: ViewedRun): AsyncIterable<string> {
  return views[format](ledger, run)
}

const views: Readonly<Record<ViewFormat, (ledger: Ledger, run: ViewedRun) => AsyncIterable<string>>> = {
  otlp: otlpLines,
  agui: agUiLines,
  messages: messageLines,
}

/** So many spans are in one request at most: receivers refuse large ones. */
const maxSpans = 500

/** Each line is the body of one request to a receiver. */
async function* otlpLines(ledger: Ledger, { runId, withChildren }: ViewedRun): AsyncGenerator<string> {
  const serviceName = process.env['OTEL_SERVICE_NAME'] || undefined
  let spans: Span[] = []
  for await (const span of recordedSpans(ledger, runId, { withChildren })) {
    spans.push(span)
    if (spans.length < maxSpans) continue
    yield JSON.stringify(toOtlp(spans, { serviceName }))
    spans = []
  }
  if (spans.length > 0) yield JSON.stringify(toOtlp(spans, { serviceName }))
}

async function* agUiLines(ledger: Ledger, { runId }: ViewedRun): AsyncGenerator<string> {
  const lines: string[] = []
  const events$ = new Subject<RuntimeEvent>()
  const shown = toAgUi(events$).subscribe((event) => lines.push(JSON.stringify(event)))
  for await (const event of ledger.read(runId)) {
    events$.next(event)
    yield* lines.splice(0)
  }
  shown.unsubscribe()
}

async function* messageLines(ledger: Ledger, { runId }: ViewedRun): AsyncGenerator<string> {
  let state: RunState | undefined
  for await (const event of ledger.read(runId)) state = evolve(state, event)
  if (state) yield JSON.stringify({ runId, messages: transcript(state) })
}

/** What `export` was given. */
export interface ExportOptions {
  readonly ledger: string
  /** The one run to export; every run where none is named. */
  readonly run?: string
  /** What is printed of it: its events, or a view of them. */
  readonly format?: 'events' | ViewFormat
}

/** Declares what `export` takes. */
export function declareExport(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb)
    .option('--run <run>', 'only this run')
    .addOption(
      new Option('--format <format>', 'print spans, AG-UI events or messages instead of events')
        .choices(['events', ...viewFormats])
        .default('events'),
    )
    .action(async (ledger: string, options: Omit<ExportOptions, 'ledger'>) => {
      done(await exportLedger(context, { ledger, ...options }))
    })
}

/**
 * `export`: the events as JSON Lines, run by run in the order in which they were made, so that `import` makes them
 * in that order. Damage in one run keeps no other from being exported.
 */
export function exportLedger(
  given: CommandContext,
  { ledger: ledgerPath, run, format = 'events' }: ExportOptions,
): Promise<ExitCode> {
  const place = { programName: given.programName, ledgerPath }
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const one = run === undefined ? undefined : await findRun(ledger, run, place)
    const countAll = async (): Promise<number> =>
      one === undefined ? await countEvents(ledger) : ((await ledger.head(one))?.seq ?? 0)
    return await withProgress(given, countAll, async ({ add, context }) => {
      const histories = new ExportedHistories()
      const read = async (runId: RunId): Promise<void> => {
        if (format !== 'events') {
          // Of all runs, each is printed once, child runs included.
          const view = { runId, withChildren: one !== undefined }
          for await (const line of viewLines(ledger, format, view)) await context.print(`${line}\n`)
          add((await ledger.head(runId))?.seq ?? 0)
          return
        }
        for await (const line of exportEvents(ledger, runId, histories)) {
          await context.print(`${line}\n`)
          add(1)
        }
      }
      if (one === undefined) return await readEachRun(context, runsFromTheFirst(ledger), read)
      await read(one)
      return exitCodes.ok
    })
  })
}

/** What `import` was given. */
export interface ImportOptions {
  /** Created if it does not exist. */
  readonly ledger: string
  /** What `export` printed; `-` for standard input. */
  readonly file: string
}

/** Declares what `import` takes. */
export function declareImport(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, 'read an export into a ledger, which is created if it does not exist')
    .argument('<file>', 'file that export wrote; - reads standard input')
    .action(async (ledger: string, file: string) => {
      done(await importLedger(context, { ledger, file }))
    })
}

/** `import`: reads what `export` printed into a ledger, every event checked before it is written. A line a run. */
export function importLedger(
  context: CommandContext,
  { ledger: ledgerPath, file }: ImportOptions,
): Promise<ExitCode> {
  if (file !== '-' && statSync(file, { throwIfNoEntry: false })?.isDirectory() !== false) {
    throw new CommandError(
      'not_found',
      `There is no file ${file}. Name one that tallystick export has written.`,
    )
  }
  return withLedger(ledgerPath, 'make', async (ledger) => {
    const chunks = file === '-' ? context.stdin : createReadStream(file)
    const countAll = async (): Promise<number | undefined> => (file === '-' ? undefined : statSync(file).size)
    const report = await withProgress(
      context,
      countAll,
      ({ context: aside, add }) =>
        importEvents(ledger, linesOf(bytesOf(chunks, add)), { onRun: (run) => printRun(aside, run) }),
      bytesText,
    )
    const { json, print, say } = context
    if (report.torn) say(tornText(report.torn))
    await print(json ? `${JSON.stringify(report)}\n` : summaryText(report))
    return exitCodes.ok
  })
}

async function printRun({ json, print }: CommandContext, run: ImportedRun): Promise<void> {
  const { runId, events, present } = run
  const line = json ? JSON.stringify(run) : `${runId}  ${counted(events, 'event')}${presentText(present)}`
  await print(`${line}\n`)
}

/** Yields the bytes of a stream, counted. A stream with an encoding yields texts. */
async function* bytesOf(
  chunks: AsyncIterable<string | Uint8Array>,
  count: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    yield bytes
    count(bytes.length)
  }
}

function presentText(present: number): string {
  return present === 0 ? '' : `, ${present} were there`
}

function tornText({ line }: NonNullable<ImportReport['torn']>): string {
  return `Line ${line}, the last one, is cut off in the middle of an event, so it was left out.`
}

function summaryText({ runs, events, present }: ImportReport): string {
  return `imported  ${counted(runs, 'run')}, ${counted(events, 'event')}${presentText(present)}\n`
}

/** Declares what `rebuild` takes. */
export function declareRebuild(verb: Command, context: CommandContext, done: Done): void {
  onLedger(
    verb,
    'make again what is derived from the events: projections for list and stats, and snapshots',
  ).action(async (ledger: string) => {
    done(await rebuild(context, ledger))
  })
}

/**
 * `rebuild`: drops what a ledger keeps beside its events, snapshots and projections, and makes the projections of runs,
 * sessions and totals anew. Runs that are under way continue meanwhile.
 */
export function rebuild(context: CommandContext, ledgerPath: string): Promise<ExitCode> {
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const { runs, events } = await withProgress(
      context,
      () => countEvents(ledger),
      ({ add }) => rebuildProjections(ledger, add),
    )
    const text = `rebuilt from ${counted(events, 'event')} of ${counted(runs, 'run')}`
    await context.print(context.json ? `${JSON.stringify({ runs, events })}\n` : `${text}\n`)
    return exitCodes.ok
  })
}
