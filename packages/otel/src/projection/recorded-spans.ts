import type { Ledger } from '@tallystick/core'
import type { EventOf, RunId, RuntimeEvent } from '@tallystick/core/vocabulary'
import { RunSpans } from './run-spans.ts'
import type { Span } from './span.ts'

type Start = EventOf<'run_started'>

/**
 * Returns the spans of runs that have ended, in the order in which they ended, from the events of one run or of many: those
 * of each run from its first, in any order of runs. Ids are those that `traceRuns` gives the same spans. Pure.
 */
export function spansOf(events: Iterable<RuntimeEvent>): readonly Span[] {
  const all = [...events]
  const starts = new Map<string, Start>()
  for (const event of all) if (event.type === 'run_started') starts.set(event.runId, event)
  const folds = new Map<string, RunSpans>()
  return all.flatMap((event) => {
    const start = starts.get(event.runId)
    if (start === undefined) return []
    const fold = folds.get(event.runId) ?? new RunSpans(start, starts)
    folds.set(event.runId, fold)
    return fold.next(event).flatMap((move) => (move.type === 'ended' ? [move.span] : []))
  })
}

/**
 * Yields the spans of a recorded run that have ended, and those of the runs that worked for it, each run after the one that
 * it works for. Reads in constant memory, and writes nothing.
 */
export async function* recordedSpans(ledger: Ledger, runId: RunId): AsyncGenerator<Span> {
  const waiting: RunId[] = [runId]
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    let fold: RunSpans | undefined
    for await (const event of ledger.read(next)) {
      if (event.type === 'run_started') fold = new RunSpans(event, await startsBefore(ledger, event))
      if (event.type === 'tool_started' && event.child && event.attempt === 1) waiting.push(event.child)
      for (const move of fold?.next(event) ?? []) if (move.type === 'ended') yield move.span
    }
  }
}

/** Returns the first events that say where a run is among traces: those of the runs above it, and of the one that it follows. */
export async function startsBefore(ledger: Ledger, start: Start): Promise<ReadonlyMap<string, Start>> {
  const starts = new Map<string, Start>([[start.runId, start]])
  for (let { parent } = start; parent !== undefined;) {
    const before = await firstEvent(ledger, parent.runId)
    if (before === undefined) break
    starts.set(parent.runId, before)
    parent = before.parent?.relation === 'child' ? before.parent : undefined
  }
  return starts
}

async function firstEvent(ledger: Ledger, runId: RunId): Promise<Start | undefined> {
  for await (const event of ledger.read(runId, { toSeq: 1 })) if (event.type === 'run_started') return event
  return undefined
}
