import {
  type Ledger,
  LedgerDamagedError,
  type RunId,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import { toRunTimes } from '@tallystick/core/internal'
import type { EventType } from '@tallystick/core/vocabulary'
import { type FoldedRun, foldTo, readOutline } from '@tallystick/ledger'

interface RunReadingOptions {
  /** `onEvent` gets the events of these types. */
  readonly types?: readonly EventType[]
  /** Only those of this turn. */
  readonly turn?: number | undefined
  readonly onEvent?: (event: RuntimeEvent) => void
}

interface EventRange {
  /** The last event. Default: the run's last. */
  readonly toSeq?: number | undefined
  readonly turn?: number | undefined
}

/**
 * Reads the state and the outline of a run at its event `toSeq`, by default the last. `onEvent` gets the events that are
 * asked for, in order. Rejects with a `RunNotFoundError` if there is no such run.
 */
export async function readRun(
  ledger: Ledger,
  runId: RunId,
  toSeq?: number,
  { types = [], turn, onEvent = () => {} }: RunReadingOptions = {},
): Promise<FoldedRun> {
  return await readOutline(ledger, runId, toSeq, {
    onEvent(event) {
      if (types.includes(event.type) && event.turn === (turn ?? event.turn)) onEvent(event)
    },
  })
}

/** Reads events of some types, in order. Damage after `toSeq` does not matter. */
export async function* readEvents(
  ledger: Ledger,
  runId: RunId,
  types: readonly EventType[],
  { toSeq, turn }: EventRange = {},
): AsyncGenerator<RuntimeEvent> {
  const found = ledger.find({ runId, types, ...(turn !== undefined && { turn }) })
  if (toSeq === undefined) return yield* found
  let lastSeq = 0
  try {
    for await (const event of found) {
      if (event.seq > toSeq) return
      yield event
      lastSeq = event.seq
    }
  } catch (error) {
    if (!(error instanceof LedgerDamagedError)) throw error
    // The damage may be after the last event that is asked for.
    for await (const event of ledger.read(runId, { fromSeq: lastSeq + 1, toSeq })) {
      if (types.includes(event.type) && event.turn === (turn ?? event.turn)) yield event
    }
  }
}

/**
 * Reads how long a run waited for decisions, in milliseconds. The waits that a fork shares with the other run are not its
 * own, nor is the time until it was forked.
 */
export async function readWaitedTime(ledger: Ledger, state: RunState): Promise<number> {
  const { runId, seq, parent, waitedMs } = state
  if (parent?.relation !== 'fork' || waitedMs === 0) return waitedMs
  const { startedAt } = toRunTimes(state)
  for await (const event of ledger.read(runId, { fromSeq: parent.seq + 1, toSeq: seq })) {
    // An edited event of a fork may have the time of the event that it replaced.
    if (event.at < startedAt) continue
    const before = await foldTo(ledger, runId, event.seq - 1)
    const after = await foldTo(ledger, runId, event.seq)
    const untilForked = Math.max(0, startedAt - before.at)
    return waitedMs - before.waitedMs - Math.min(after.waitedMs - before.waitedMs, untilForked)
  }
  return 0
}
