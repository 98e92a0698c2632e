import { option, requireLedger, requireOptions } from '@tallystick/core/kit'
import { RunNotFoundError, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { canonicalJson, type Json } from '@tallystick/core/vocabulary'
import { requireTextId } from '@tallystick/core/store-kit'
import { recordedEvents } from '../store/read-events.ts'
import { untilBadIds } from '../format/stored-ids.ts'
import { ExportedHistories } from './shared-history.ts'

const exportedBefore = option.valueThat(
  'new ExportedHistories(), the same for all runs of a file',
  (value) => value instanceof ExportedHistories,
)

const anEvent = option.valueThat('an event, such as ledger.read yields', (value) => {
  const { runId, type } = Object(value) as { readonly runId?: unknown; readonly type?: unknown }
  return typeof runId === 'string' && typeof type === 'string'
})

/**
 * Yields the events of one run, or of every run in the order in which the runs were made, as JSON Lines: one object a
 * line, without the line feed. They are exported as they were recorded, in any version; `importEvents` reads them.
 *
 * First runId, seq, epoch, turn, toolCallId (if there is one), type, v and at, then the keys of the body in code-unit
 * order, so that equal events make equal lines. Types that this version does not know are exported too. Carried
 * messages that an earlier run of the export carried too are exported once: `shared` names the event of that run, and
 * how many of its messages come first.
 *
 * To export runs one by one into one file, pass the same `histories` to each call.
 *
 * Rejects with `RunNotFoundError` if the ledger has no such run, and with `LedgerDamagedError` after the last run if
 * the ledger has rows with invalid run ids. Rejects with a `ConfigurationError` for what is no ledger, and for a run id
 * that is no text.
 */
export async function* exportEvents(
  ledger: Ledger,
  runId?: RunId,
  histories: ExportedHistories = new ExportedHistories(),
): AsyncGenerator<string> {
  requireLedger('exportEvents', ledger)
  if (runId !== undefined) requireTextId('exportEvents', runId)
  requireOptions('exportEvents', exportedBefore, histories, 'the third argument')
  for await (const exported of runId === undefined ? everyRun(ledger) : oneRun(ledger, runId)) {
    for await (const event of recordedEvents(ledger, exported))
      yield exportedLine(histories.withoutShared(event))
  }
}

/** Yields the oldest run first, since a ledger lists the newest first and an import creates the oldest first. */
async function* everyRun(ledger: Ledger): AsyncGenerator<RunId> {
  const newestFirst: RunId[] = []
  const { error } = await untilBadIds(ledger.runs(), ({ runId }) => void newestFirst.push(runId))
  yield* newestFirst.toReversed()
  if (error) throw error
}

async function* oneRun(ledger: Ledger, runId: RunId): AsyncGenerator<RunId> {
  if ((await ledger.head(runId)) === undefined) throw new RunNotFoundError(runId)
  yield runId
}

/** An event as one line of an export. Throws a `ConfigurationError` for what is no event. */
export function exportedLine(event: RuntimeEvent): string {
  requireOptions('exportedLine', anEvent, event, 'the event')
  const { runId, seq, epoch, turn, toolCallId, type, v, at } = event
  const call = toolCallId !== undefined && { toolCallId }
  const envelope = { runId, seq, epoch, turn, ...call, type, v, at }
  const body = Object.entries(event).filter(([key]) => !Object.hasOwn(envelope, key))
  const rest = canonicalJson(Object.fromEntries<Json>(body))
  return rest === '{}'
    ? JSON.stringify(envelope)
    : `${JSON.stringify(envelope).slice(0, -1)},${rest.slice(1)}`
}
