import { createReadStream, statSync } from 'node:fs'
import { type Ledger, type RunId, type RuntimeEvent, TallystickError } from '@tallystick/core'
import { evolve, type RunState, toTranscript } from '@tallystick/core/machine'
import {
  ExportedHistories,
  exportEvents,
  importEvents,
  splitLines,
  rebuildProjections,
} from '@tallystick/ledger'
import { readSpans, type Span, toOtlp } from '@tallystick/otel'
import { toAgUi } from '@tallystick/server'
import { type Command, Option } from '@commander-js/extra-typings'
import { Subject } from 'rxjs'
import { declareLedger, readAccountName } from '../command/arguments.ts'
import { type CommandContext, formatCommand, printEither } from '../command/context.ts'
import { CommandError } from '../command/exit-code.ts'
import { countBytes, formatBytes, withProgress } from '../command/progress.ts'
import { formatCount } from '../command/text.ts'
import { findRun } from '../runs/find-run.ts'
import { countEvents, UnreadableRuns, withLedger } from '../runs/open-ledger.ts'
import type { Done } from '../verbs.ts'

/** Formats of `export` other than events: spans, what a chat page shows, and what the model is shown. */
const viewFormats = ['otlp', 'agui', 'messages'] as const
type ViewFormat = (typeof viewFormats)[number]

/**
 * Declares `export`. It prints the runs oldest first, so that `import` makes them in that order; damage in one keeps no other from
 * being exported.
 */
export function declareExport(verb: Command, context: CommandContext, done: Done): void {
  declareLedger(verb)
    .option('--run <run>', 'only this run')
    .addOption(
      new Option(
        '--format <format>',
        'print spans, AG-UI events, messages, or a page that shows one run, instead of events',
      )
        .choices(['events', ...viewFormats, 'html'])
        .default('events'),
    )
    .action(async (ledgerPath, { run, format }) => {
      if (format === 'html') return await exportPage(context, ledgerPath, run)
      done(
        await withLedger(ledgerPath, 'read', async (ledger) => {
          const { programName } = context
          const one = run === undefined ? undefined : await findRun(ledger, run, { programName, ledgerPath })
          return await withProgress(
            context,
            () => countEvents(ledger, one),
            async ({ add, context: aside }) => {
              const { print } = aside
              const histories = new ExportedHistories()
              const unreadable = new UnreadableRuns(aside)
              const runIds = one === undefined ? [] : [one]
              if (one === undefined) for await (const { runId } of ledger.runs()) runIds.unshift(runId)
              for (const runId of runIds) {
                try {
                  if (format === 'events') {
                    for await (const line of exportEvents(ledger, runId, histories)) {
                      await print(`${line}\n`)
                      add(1)
                    }
                  } else {
                    // Of all runs, each is printed once, child runs included.
                    const viewed = { runId, withChildren: one !== undefined }
                    for await (const line of readViewLines(ledger, format, viewed)) await print(`${line}\n`)
                    add((await ledger.head(runId))?.seq ?? 0)
                  }
                } catch (error) {
                  const isOfOneRun = error instanceof TallystickError && errorsOfOneRun.includes(error.code)
                  if (one !== undefined || !isOfOneRun) throw error
                  unreadable.report(error)
                }
              }
              return unreadable.exitCode
            },
          )
        }),
      )
    })
}

/** Writes the page of the inspector with a run and its child runs in it, which opens without a server. */
async function exportPage(
  context: CommandContext,
  ledgerPath: string,
  run: string | undefined,
): Promise<void> {
  const { programName, isRead } = context
  if (run === undefined || isRead) {
    const why =
      run === undefined ? 'A page shows one run. Name it' : 'A page is a file for a browser. Write it to one'
    const words = ['export', ledgerPath, '--run', run ?? 'latest', '--format', 'html']
    throw new CommandError('usage', `${why}: ${formatCommand(programName, ...words)} > run.html`)
  }
  const { exportRunPage } = await import('@tallystick/inspector')
  await withLedger(ledgerPath, 'read', async (ledger) => {
    const runId = await findRun(ledger, run, { programName, ledgerPath })
    for await (const piece of exportRunPage(ledger, runId)) await context.printData(piece)
  })
}

/** Codes of errors about the record of one run, which say nothing about other runs. */
const errorsOfOneRun: readonly string[] = [
  'ledger_damaged',
  'law_broken',
  'illegal_transition',
  'unknown_event',
]

/** A run to view, and whether its child runs are part of the view. */
export interface ViewedRun {
  readonly runId: RunId
  readonly withChildren: boolean
}

/** Reads a run in a format, as lines of JSON. */
export function readViewLines(ledger: Ledger, format: ViewFormat, run: ViewedRun): AsyncIterable<string> {
  return views[format](ledger, run)
}

const views: Readonly<Record<ViewFormat, (ledger: Ledger, run: ViewedRun) => AsyncIterable<string>>> = {
  otlp: readOtlpLines,
  agui: readAgUiLines,
  messages: readMessageLines,
}

/** The most spans of one request: receivers refuse large ones. */
const maxSpans = 500

/** Each line is the body of one request to a receiver. */
async function* readOtlpLines(ledger: Ledger, { runId, withChildren }: ViewedRun): AsyncGenerator<string> {
  const serviceName = process.env['OTEL_SERVICE_NAME'] || undefined
  let spans: Span[] = []
  for await (const span of readSpans(ledger, runId, { withChildren })) {
    spans.push(span)
    if (spans.length < maxSpans) continue
    yield JSON.stringify(toOtlp(spans, { serviceName }))
    spans = []
  }
  if (spans.length > 0) yield JSON.stringify(toOtlp(spans, { serviceName }))
}

async function* readAgUiLines(ledger: Ledger, { runId }: ViewedRun): AsyncGenerator<string> {
  const lines: string[] = []
  const events$ = new Subject<RuntimeEvent>()
  const shown = toAgUi(events$).subscribe((event) => lines.push(JSON.stringify(event)))
  for await (const event of ledger.read(runId)) {
    events$.next(event)
    yield* lines.splice(0)
  }
  shown.unsubscribe()
}

async function* readMessageLines(ledger: Ledger, { runId }: ViewedRun): AsyncGenerator<string> {
  let state: RunState | undefined
  for await (const event of ledger.read(runId)) state = evolve(state, event)
  if (state) yield JSON.stringify({ runId, messages: toTranscript(state) })
}

/** Declares `import`. Every event is checked before it is written. Prints a line for each run. */
export function declareImport(verb: Command, context: CommandContext): void {
  declareLedger(verb, 'read an export into a ledger, which is created if it does not exist')
    .argument('<file>', 'file that export wrote; - reads standard input')
    .action(async (ledgerPath, file) => {
      if (file !== '-' && statSync(file, { throwIfNoEntry: false })?.isDirectory() !== false) {
        throw new CommandError(
          'not_found',
          `There is no file ${file}. Name one that tallystick export has written.`,
        )
      }
      await withLedger(ledgerPath, 'make', async (ledger) => {
        const chunks = file === '-' ? context.stdin : createReadStream(file)
        const report = await withProgress(
          context,
          async () => (file === '-' ? undefined : statSync(file).size),
          ({ context: aside, add }) =>
            importEvents(ledger, splitLines(countBytes(chunks, add)), {
              by: readAccountName(),
              onRun: (run) => printEither(aside, run, `${run.runId}  ${formatImported(run)}\n`),
            }),
          formatBytes,
        )
        const { runs, torn } = report
        if (torn) {
          context.say(
            `Line ${torn.line}, the last one, is cut off in the middle of an event, so it was left out.`,
          )
        }
        const text = `imported  ${formatCount(runs, 'run')}, ${formatImported(report)}\n`
        await printEither(context, report, text)
      })
    })
}

function formatImported({ events, present }: { readonly events: number; readonly present: number }): string {
  return `${formatCount(events, 'event')}${present === 0 ? '' : `, ${present} were there`}`
}

/** Declares `rebuild`. Runs that are under way continue while it works. */
export function declareRebuild(verb: Command, context: CommandContext): void {
  declareLedger(
    verb,
    'rebuild what is derived from the events: projections for list and stats, and snapshots',
  ).action((ledgerPath) =>
    withLedger(ledgerPath, 'write', async (ledger) => {
      const { runs, events } = await withProgress(
        context,
        () => countEvents(ledger),
        ({ add }) => rebuildProjections(ledger, add),
      )
      const text = `rebuilt from ${formatCount(events, 'event')} of ${formatCount(runs, 'run')}`
      await printEither(context, { runs, events }, `${text}\n`)
    }),
  )
}
