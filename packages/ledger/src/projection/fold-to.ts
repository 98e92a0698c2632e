import {
  ConfigurationError,
  type Ledger,
  type ModelRequest,
  type RunId,
  RunNotFoundError,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import {
  digestAdditions,
  callsInParallel,
  getCurrentModel,
  omitUndefined,
  option,
  requireLedger,
  requireOptions,
  pickWritingSettings,
} from '@tallystick/core/internal'
import { evolve, toModelRequest, nextAction, toTranscript } from '@tallystick/core/machine'
import { requireTextId } from '@tallystick/core/store-kit'
import type { EventOf, ModelRef, RequestAddition } from '@tallystick/core/vocabulary'
import { visitEvents } from '../store/read-events.ts'
import { getDatabase, orElse } from '../store/store.ts'
import { OutlineFold, type RunOutline } from './run-outline.ts'
import { listSnapshotPlaces, Snapshots } from './snapshots.ts'

export interface FoldOptions {
  /** Begin at the last snapshot that the store has of the run. Default: `true`. */
  readonly snapshots?: boolean | undefined
  /** Gets each event that is folded, in order: all from the first on, or those after a snapshot. */
  readonly onEvent?: ((event: RuntimeEvent) => void) | undefined
}

const anySeq = option.numberFrom(1, { whole: true })
const foldOptions = option.fields<FoldOptions>({
  snapshots: option.maybe(option.trueOrFalse),
  onEvent: option.maybe(option.anyFunction),
})

/**
 * Returns the state of a run right after its event `seq`, or after its last one, without any call. It equals the state
 * that the live run had there. If the store keeps snapshots, it reads only the events after the last one before `seq`, and
 * a long fold leaves a new one, if the ledger was opened for writing. A snapshot is bound to its history and to the code
 * that made it; a damaged one is ignored. Rejects with `RunNotFoundError` if the ledger has no such run, with
 * `ConfigurationError` if the run has no such event, and with what `evolve` throws if an event is not legal.
 */
export async function foldTo(
  ledger: Ledger,
  runId: RunId,
  seq?: number,
  options: FoldOptions = {},
): Promise<RunState> {
  const toSeq = await requireSeq('foldTo', { ledger, runId, seq, options })
  const { snapshots: usesSnapshots = true, onEvent } = options
  const state = await foldStoredRun(ledger, runId, { toSeq, usesSnapshots, ...omitUndefined({ onEvent }) })
  if (state === undefined) throw new RunNotFoundError(runId)
  return state
}

/** A run after one of its events. */
export interface FoldedRun {
  readonly state: RunState
  readonly outline: RunOutline
}

/**
 * The same, with what the events of the run say over all its turns: who had the conversation, which calls there were, how they
 * ended. Reads every event.
 */
export async function readOutline(
  ledger: Ledger,
  runId: RunId,
  seq?: number,
  options: FoldOptions = {},
): Promise<FoldedRun> {
  const toSeq = await requireSeq('readOutline', { ledger, runId, seq, options })
  const fold = new OutlineFold()
  const state = await foldStoredRun(ledger, runId, {
    toSeq,
    usesSnapshots: false,
    onEvent(event) {
      fold.add(event)
      options.onEvent?.(event)
    },
  })
  if (state === undefined) throw new RunNotFoundError(runId)
  return { state, outline: fold.outline }
}

interface FoldGiven {
  readonly ledger: Ledger
  readonly runId: RunId
  readonly seq: number | undefined
  readonly options: FoldOptions
}

async function requireSeq(subject: string, { ledger, runId, seq, options }: FoldGiven): Promise<number> {
  requireLedger(subject, ledger)
  requireTextId(subject, runId)
  if (seq !== undefined) requireOptions(subject, anySeq, seq, 'seq')
  requireOptions(subject, foldOptions, options)
  const head = await ledger.head(runId)
  if (head === undefined) throw new RunNotFoundError(runId)
  const toSeq = seq ?? head.seq
  if (Number.isInteger(toSeq) && toSeq >= 1 && toSeq <= head.seq) return toSeq
  throw new ConfigurationError(
    `Run ${runId} has the events 1 to ${head.seq}, so there is no state at seq ${toSeq}. Name one of them.`,
  )
}

/**
 * Returns how many events a fold to `seq` reads, from the last snapshot before it on; `undefined` if the store keeps no
 * snapshots.
 */
export async function countEventsToFold(
  ledger: Ledger,
  runId: RunId,
  seq: number,
): Promise<number | undefined> {
  requireLedger('countEventsToFold', ledger)
  const database = getDatabase(ledger)
  if (database === undefined) return undefined
  // Unreadable snapshots are ignored.
  const places = await orElse([], () => listSnapshotPlaces(database, runId))
  return seq - (places.findLast((place) => place <= seq) ?? 0)
}

/** How far a fold goes, and which events it passes on. */
export interface FoldPlan {
  /** The last event that is folded. */
  readonly toSeq: number
  /** Begin at the last snapshot of the store. */
  readonly usesSnapshots: boolean
  /** `onEvent` gets every event after this one, also those that a snapshot covers. Default: those that are folded. */
  readonly onEventAfter?: number
  readonly onEvent?: (event: RuntimeEvent) => void
}

/** A fold of fewer events takes no longer than the search for a snapshot. */
const longSeqMin = 64

/** A fold of so many events keeps its state as a snapshot. */
const eventsFar = 200

/**
 * Folds a run up to an event, from the last snapshot on; `undefined` if the run has no events. Throws what `evolve` throws
 * if an event is not legal.
 */
export async function foldStoredRun(
  ledger: Ledger,
  runId: RunId,
  plan: FoldPlan,
): Promise<RunState | undefined> {
  const { toSeq, usesSnapshots, onEvent, onEventAfter } = plan
  const database = usesSnapshots && toSeq >= longSeqMin ? getDatabase(ledger) : undefined
  const snapshots = database && new Snapshots(database, ledger, runId)
  await snapshots?.begin()
  // A snapshot spares nothing if every event is passed on.
  const begun = onEventAfter === 0 ? undefined : await snapshots?.findLast(toSeq)
  const begunSeq = begun?.seq ?? 0
  const after = onEventAfter ?? begunSeq
  let state = begun
  try {
    await visitEvents(ledger.read(runId, { fromSeq: Math.min(begunSeq, after) + 1, toSeq }), (event) => {
      snapshots?.handle(event)
      if (event.seq > begunSeq) state = evolve(state, event)
      if (event.seq > after) onEvent?.(event)
    })
  } catch (error) {
    // A forged snapshot costs only time, where no event was passed on yet.
    if (begun === undefined || onEvent) throw error
    return await foldStoredRun(ledger, runId, { ...plan, usesSnapshots: false })
  }
  if (state && state.seq - begunSeq >= eventsFar) await snapshots?.keep(state)
  return state
}

/** The request that a model got, or would get, in a state of a run. */
export interface RebuiltRequest {
  readonly model: ModelRef
  readonly request: ModelRequest
  /**
   * The recorded digest of the model call that is in flight in this state, which this request has. Absent if no call is
   * in flight: then this is the request that a call would send here, as far as the ledger can tell. Changes by an
   * agent's `prepareTurn` are not in it, and calls without a result have placeholders.
   */
  readonly requestDigest?: string
  /** Fields that options of the model's adapter add to the request, or replace in it. Values are not on record. */
  readonly additions?: readonly RequestAddition[]
}

const runState = option.valueThat(
  'the state of a run, such as await foldTo(ledger, runId, seq)',
  (value) => typeof value === 'object' && value !== null && 'phase' in value && 'definition' in value,
)

/** Returns the model request of a state: with `foldTo`, that of any event of a run. Pure, without any call. */
export function rebuildRequest(state: RunState): RebuiltRequest {
  requireOptions('rebuildRequest', runState, state, 'the state')
  if (state.phase === 'streaming') {
    const { model, requestDigest } = state.attempt
    return { model, requestDigest, request: toModelRequest(state), ...toAdditions(state, model) }
  }
  const { instructions, tools, output } = state.definition
  const { model, toolChoice, maxOutputTokens } = findNextCall(state)
  return {
    model,
    request: {
      instructions,
      messages: toTranscript(state),
      tools,
      toolChoice,
      parallelToolCalls: callsInParallel(state),
      ...omitUndefined({
        maxOutputTokens,
        outputSchema: output?.schema,
        modelSettings: pickWritingSettings(state),
        providerState: state.providerState,
      }),
    },
    ...toAdditions(state, model),
  }
}

function toAdditions({ definition }: RunState, model: ModelRef): Pick<RebuiltRequest, 'additions'> {
  return omitUndefined({ additions: digestAdditions(definition, model) })
}

type CallOptions = Pick<EventOf<'model_call_started'>, 'model' | 'toolChoice' | 'maxOutputTokens'>

/** Returns the options of the next model call, if one is due; else those of an unhindered call. */
function findNextCall(state: RunState): CallOptions {
  // Only the code knows the agent that takes over.
  const isHandedOver = state.phase === 'injecting' && state.handoff !== undefined
  const next = isHandedOver ? undefined : nextAction(state, state.at)
  const due = next?.kind === 'call_model' ? next.facts : []
  for (const fact of due) if (fact.type === 'model_call_started') return fact
  const { maxOutputTokens } = state.definition
  return {
    model: getCurrentModel(state),
    toolChoice: { type: 'auto' },
    ...omitUndefined({ maxOutputTokens }),
  }
}
