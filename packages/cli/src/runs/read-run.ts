import {
  LedgerDamagedError,
  type Ledger,
  type RunId,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import type { Tally } from '@tallystick/core/machine'
import type { EventType } from '@tallystick/core/vocabulary'
import { tallyOf } from '@tallystick/core/machine'
import { foldTo } from '@tallystick/ledger'

/** A run at one of its events. */
export interface RunReading {
  readonly state: RunState
  readonly tally: Tally
  /** Those that had the conversation, in order: the one that the run was started with, and each that took over. */
  readonly agents: readonly string[]
  /** The runs that do the work of a call, in order; in a fork also those that another run has had do it. */
  readonly children: readonly RunId[]
}

/** Read of every turn: they say who had the conversation, and which calls there were. */
const readTypes: readonly EventType[] = [
  ...(['run_started', 'agent_handed_off', 'tool_request_ready', 'tool_result', 'tool_started'] as const),
]

/** What is read of a run over its state. */
interface RunReadingOptions {
  /** Events of these types are passed on too. */
  readonly types?: readonly EventType[]
  /** Of the events of `types`, only those of this turn are passed on. */
  readonly turn?: number | undefined
  readonly onEvent?: (event: RuntimeEvent) => void
}

/** Which events of a run are read. */
interface EventRange {
  /** The last of them. The run's last where not given. */
  readonly toSeq?: number | undefined
  readonly turn?: number | undefined
}

/**
 * Reads a run up to its event `toSeq`, or to the last: its state from the nearest snapshot, and of its events those that
 * say more; `onEvent` gets each of these, and those of `types`, in order. Rejects with `RunNotFoundError` where there is no
 * such run.
 */
export async function readRun(
  ledger: Ledger,
  runId: RunId,
  toSeq?: number,
  { types = [], turn, onEvent = () => {} }: RunReadingOptions = {},
): Promise<RunReading> {
  const { state, events } = await foldedRun(ledger, runId, types, { toSeq, turn })
  const halves: RuntimeEvent[] = []
  const agents: string[] = []
  const children = new Set<RunId>()
  const handle = (event: RuntimeEvent): void => {
    if (event.type === 'tool_request_ready' || event.type === 'tool_result') halves.push(event)
    if (event.type === 'run_started') agents.push(event.agent)
    if (event.type === 'agent_handed_off') agents.push(event.to)
    if (event.type === 'tool_started' && event.child !== undefined) children.add(event.child)
    onEvent(event)
  }
  for (const some of events) for await (const event of some) handle(event)
  return { state, tally: tallyOf(halves), agents, children: [...children] }
}

/** The state of a run, and the events that are read of it. A fold comes by those after its snapshot, or by all of them. */
async function foldedRun(
  ledger: Ledger,
  runId: RunId,
  types: readonly EventType[],
  { toSeq, turn }: EventRange,
): Promise<{
  readonly state: RunState
  readonly events: readonly (Iterable<RuntimeEvent> | AsyncIterable<RuntimeEvent>)[]
}> {
  const more = types.filter((type) => !readTypes.includes(type))
  const isRead = (event: RuntimeEvent): boolean =>
    readTypes.includes(event.type) || (more.includes(event.type) && event.turn === (turn ?? event.turn))
  let folded: RuntimeEvent[] = []
  let begunSeq: number | undefined
  const state = await foldTo(ledger, runId, toSeq, {
    onEvent: (event) => {
      // A fold that begins again begins with the first event.
      if (event.seq === 1) folded = []
      begunSeq = Math.min(begunSeq ?? event.seq, event.seq)
      if (isRead(event)) folded.push(event)
    },
  })
  if (begunSeq === 1) return { state, events: [folded] }
  const before = eventsAround(ledger, runId, more, { toSeq: (begunSeq ?? state.seq + 1) - 1, turn })
  return { state, events: [before, folded] }
}

/** The events of `readTypes`, and of some more types, in order; with a turn, the latter of that turn only. */
async function* eventsAround(
  ledger: Ledger,
  runId: RunId,
  more: readonly EventType[],
  { toSeq, turn }: EventRange,
): AsyncGenerator<RuntimeEvent> {
  if (turn === undefined) return yield* eventsOf(ledger, runId, [...readTypes, ...more], { toSeq })
  const inTurn: RuntimeEvent[] = []
  for await (const event of eventsOf(ledger, runId, more, { toSeq, turn })) inTurn.push(event)
  let next = 0
  for await (const event of eventsOf(ledger, runId, readTypes, { toSeq })) {
    for (let own = inTurn[next]; own && own.seq < event.seq; own = inTurn[++next]) yield own
    yield event
  }
  yield* inTurn.slice(next)
}

/** Reads the events of some types, in order. Damage to events after `toSeq` does not matter. */
export async function* eventsOf(
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
    // The damage may lie after the last event that is asked for.
    for await (const event of ledger.read(runId, { fromSeq: lastSeq + 1, toSeq })) {
      if (types.includes(event.type) && event.turn === (turn ?? event.turn)) yield event
    }
  }
}
