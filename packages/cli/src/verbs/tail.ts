import type { Ledger, RunState, RuntimeEvent } from '@tallystick/core'
import { evolve, isSuspended } from '@tallystick/core/machine'
import type { TailCursor, TailedEvent } from '@tallystick/core/vocabulary'
import { watch, watchLedger } from '@tallystick/ledger'
import type { Command } from '@commander-js/extra-typings'
import { concatMap, takeUntil, takeWhile } from 'rxjs'
import { declareLedger, parseWholeNumber } from '../command/arguments.ts'
import { type CommandContext, printJson } from '../command/context.ts'
import { CommandError } from '../command/exit-code.ts'
import { type NamedRun, withRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import { toStatusView, formatStatus, readWaits } from '../runs/run-status.ts'
import { awaitCompletion, handleAll, runUntilStopped } from '../terminal/wait.ts'
import { createLedgerPrinter, createRunPrinter } from '../view/events.ts'

/** Declares `tail`. It shows the recorded events and then each new one, whichever process drives the runs, until Ctrl-C. */
export function declareTail(verb: Command, context: CommandContext): void {
  declareLedger(verb)
    .argument('[run]', 'id of the run (default: every run)')
    .option('--from <seq>', 'with a run: from this event on (default: from the first)', parseWholeNumber)
    .option('--until-suspended', 'with a run: also end when it is suspended')
    .option('--after <cursor>', 'without a run: after this cursor, which --json prints')
    .action((ledgerPath, run, { after, from, untilSuspended = false }) => {
      if (run === undefined) {
        if (from === undefined && !untilSuspended) return tailAll(context, ledgerPath, after)
        throw new CommandError(
          'usage',
          '--from and --until-suspended belong to one run. Name it, or leave them out.',
        )
      }
      if (after === undefined) return tailRun(context, { ledger: ledgerPath, run }, from, untilSuspended)
      throw new CommandError(
        'usage',
        '--after belongs to every run. Leave the run out, or give --from SEQ for it.',
      )
    })
}

async function tailRun(
  context: CommandContext,
  named: NamedRun,
  from: number | undefined,
  untilSuspended: boolean,
): Promise<void> {
  await runUntilStopped((stop$) =>
    withRun(context, named, 'read', async (ledger, runId) => {
      const handle = createHandler(context, ledger, from)
      const isContinuing = (status: TailStatus): boolean =>
        status === 'continuing' || (status === 'suspended' && !untilSuspended)
      let seen = 0
      let status: TailStatus = 'continuing'
      const handleRecorded = async (event: RuntimeEvent): Promise<void> => {
        status = await handle(event)
        seen = event.seq
      }
      // Recorded events are pulled, since a watch would hold all of them in memory.
      const isWanted = await handleAll(ledger.read(runId), handleRecorded, stop$)
      if (!isWanted || !isContinuing(status)) return
      const events$ = watch(ledger, runId, seen + 1)
      await awaitCompletion(events$.pipe(concatMap(handle), takeWhile(isContinuing), takeUntil(stop$)))
    }),
  )
}

/** The status of a run after an event. */
type TailStatus = 'continuing' | 'suspended' | 'done'

function createHandler(
  context: CommandContext,
  ledger: Ledger,
  from: number = 1,
): (event: RuntimeEvent) => Promise<TailStatus> {
  const { json, say, view } = context
  const show = createRunPrinter(view)
  let state: RunState | undefined
  return async (event) => {
    state = evolve(state, event)
    if (event.seq >= from) {
      if (json) await printJson(context, event)
      else show(event)
    }
    // The feedback that a run has by now follows its end.
    if (state.phase === 'done')
      return (await ledger.head(state.runId))?.seq === state.seq ? 'done' : 'continuing'
    // Events that follow at once may show that the run does not wait, or waits for more.
    if (!isSuspended(state) || (await ledger.head(state.runId))?.seq !== state.seq) return 'continuing'
    const waits = await readWaits(ledger, state)
    if (!json) say(`The run is ${formatStatus(toStatusView(state, { waits, isDriven: true }))}.`)
    return 'suspended'
  }
}

/** With `--json`, each event comes with the cursor that `--after` takes. */
export async function tailAll(context: CommandContext, place: string, after?: TailCursor): Promise<void> {
  const show = createLedgerPrinter(context.view)
  let last = after
  const handle = async (tailed: TailedEvent): Promise<void> => {
    if (context.json) await printJson(context, tailed)
    else show(tailed.event)
    last = tailed.cursor
  }
  await runUntilStopped((stop$) =>
    withLedger(place, 'read', async (ledger) => {
      const isWanted = await handleAll(ledger.tail(after), handle, stop$)
      if (isWanted) await awaitCompletion(watchLedger(ledger, last).pipe(concatMap(handle), takeUntil(stop$)))
    }),
  )
}
