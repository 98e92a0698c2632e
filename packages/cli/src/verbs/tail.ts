import type { Ledger, RunState, RuntimeEvent } from '@tallystick/core'
import { evolve, isSuspended } from '@tallystick/core/machine'
import type { TailCursor, TailedEvent } from '@tallystick/core/vocabulary'
import { watch, watchLedger } from '@tallystick/ledger'
import type { Command } from 'commander'
import { concatMap, type Observable, takeUntil, takeWhile } from 'rxjs'
import { onLedger, wholeNumber } from '../command/arguments.ts'
import type { CommandContext } from '../command/context.ts'
import { CommandError, type ExitCode, exitCodes } from '../command/exit-code.ts'
import { findRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import { runStatusView, statusText, waitsOf } from '../runs/run-status.ts'
import { completed, handleAll, untilStopped } from '../terminal/wait.ts'
import type { Done } from '../verbs.ts'
import { ledgerPrinter, runPrinter } from '../view/events.ts'

/** What `tail` of a run was given. */
export interface TailOptions {
  readonly ledger: string
  readonly run: string
  /** The first event that is shown. Default: the run's first. */
  readonly from?: number
  /** Ends when the run is suspended, too. */
  readonly untilSuspended?: boolean
}

/** The options of `tail`. */
interface TailVerbOptions {
  readonly from?: number
  readonly untilSuspended?: boolean
  readonly after?: string
}

/** Declares what `tail` takes. */
export function declareTail(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb)
    .argument('[run]', 'id of the run (default: every run)')
    .option('--from <seq>', 'with a run: from this event on (default: from the first)', wholeNumber)
    .option('--until-suspended', 'with a run: also end when it is suspended')
    .option('--after <cursor>', 'without a run: after this cursor, which --json prints')
    .action(async (ledger: string, run: string | undefined, options: TailVerbOptions) => {
      done(await tailGiven(context, ledger, run, options))
    })
}

/** Follows a run, or all of them where none is named. */
async function tailGiven(
  context: CommandContext,
  ledger: string,
  run: string | undefined,
  { after, ...ofRun }: TailVerbOptions,
): Promise<ExitCode> {
  if (run === undefined && (ofRun.from !== undefined || ofRun.untilSuspended === true)) {
    throw new CommandError(
      'usage',
      '--from and --until-suspended belong to one run. Name it, or leave them out.',
    )
  }
  if (run !== undefined && after !== undefined) {
    throw new CommandError(
      'usage',
      '--after belongs to every run. Leave the run out, or give --from SEQ for it.',
    )
  }
  if (run === undefined) {
    const { tailAll } = await import('./tail.ts')
    return tailAll(context, { ledger, ...(after !== undefined && { after }) })
  }
  return tail(context, { ledger, run, ...ofRun })
}

/**
 * `tail` of a run: shows the events that are there, and then those that come, whichever process drives it, until the run
 * is done or Ctrl-C. With `--json` an event a line.
 */
export function tail(context: CommandContext, options: TailOptions): Promise<ExitCode> {
  return untilStopped((stop$) =>
    withLedger(options.ledger, 'read', (ledger) => tailOf(context, ledger, options, stop$)),
  )
}

async function tailOf(
  context: CommandContext,
  ledger: Ledger,
  options: TailOptions,
  stop$: Observable<unknown>,
): Promise<ExitCode> {
  const { ledger: ledgerPath, run, untilSuspended = false } = options
  const runId = await findRun(ledger, run, { programName: context.programName, ledgerPath })
  const handle = eventHandler(context, ledger, options)
  const isContinuing = (status: TailStatus): boolean =>
    status === 'continuing' || (status === 'suspended' && !untilSuspended)
  let seen = 0
  let status: TailStatus = 'continuing'
  const handleRecorded = async (event: RuntimeEvent): Promise<void> => {
    status = await handle(event)
    seen = event.seq
  }
  // Only what comes is pushed.
  const isWanted = await handleAll(ledger.read(runId), handleRecorded, stop$)
  if (isWanted && isContinuing(status)) {
    const events$ = watch(ledger, runId, seen + 1)
    await completed(events$.pipe(concatMap(handle), takeWhile(isContinuing), takeUntil(stop$)))
  }
  return exitCodes.ok
}

/** The status of a run after an event. */
type TailStatus = 'continuing' | 'suspended' | 'done'
type EventHandler = (event: RuntimeEvent) => Promise<TailStatus>

function eventHandler(context: CommandContext, ledger: Ledger, { from = 1 }: TailOptions): EventHandler {
  const { json, print, say, view } = context
  const show = runPrinter(view)
  let state: RunState | undefined
  return async (event) => {
    state = evolve(state, event)
    if (event.seq >= from) {
      if (json) await print(`${JSON.stringify(event)}\n`)
      else show(event)
    }
    if (state.phase === 'done') return 'done'
    // What follows at once may show that the run does not wait, or waits for more.
    if (!isSuspended(state) || (await ledger.head(state.runId))?.seq !== state.seq) return 'continuing'
    const waits = await waitsOf(ledger, state)
    if (!json) say(`The run is ${statusText(runStatusView(state, { waits, isDriven: true }))}.`)
    return 'suspended'
  }
}

/** What `tail` of a ledger was given. */
export interface TailAllOptions {
  readonly ledger: string
  /** A cursor that it printed; the first event shown is the next one. Default: the first event. */
  readonly after?: TailCursor
}

/**
 * `tail` of a ledger: shows the events of every run that are there, and then those that come, whichever process drives
 * them, until Ctrl-C. With `--json` an event and its cursor a line.
 */
export function tailAll(
  context: CommandContext,
  { ledger: place, after }: TailAllOptions,
): Promise<ExitCode> {
  const { json, print, view } = context
  const show = ledgerPrinter(view)
  let last = after
  const handle = async (tailed: TailedEvent): Promise<void> => {
    if (json) await print(`${JSON.stringify(tailed)}\n`)
    else show(tailed.event)
    last = tailed.cursor
  }
  return untilStopped((stop$) =>
    withLedger(place, 'read', async (ledger) => {
      // Only what comes is pushed.
      const isWanted = await handleAll(ledger.tail(after), handle, stop$)
      if (isWanted) await completed(watchLedger(ledger, last).pipe(concatMap(handle), takeUntil(stop$)))
      return exitCodes.ok
    }),
  )
}
