import {
  ConfigurationError,
  type Ledger,
  type ModelRequest,
  type RunId,
  RunNotFoundError,
  type RunState,
  type RuntimeEvent,
  TallystickError,
} from '@tallystick/core'
import {
  digestAdditions,
  callsInParallel,
  getCurrentModel,
  omitUndefined,
  option,
  requireLedger,
  requireOptions,
  writingSettings,
} from '@tallystick/core/internal'
import { evolve, isSuspended, modelRequest, nextAction, transcript } from '@tallystick/core/machine'
import { requireTextId } from '@tallystick/core/store-kit'
import type { EventOf, ModelRef, RequestAddition } from '@tallystick/core/vocabulary'
import { eachEvent } from '../store/read-events.ts'
import type { StoreDatabase } from '../store/database.ts'
import { databaseOf } from '../store/store.ts'
import { OutlineFold } from './run-outline.ts'
import { type FoldedRun, listSnapshotPlaces, Snapshots } from './snapshots.ts'

/** Options of a fold. */
export interface FoldOptions {
  /** Begin at the last snapshot that the store has of the run. Default: `true`. */
  readonly snapshots?: boolean | undefined
  /**
   * Gets each event that is folded, in order: all from the first on, or those after a snapshot. A fold that turns out to have
   * begun at a wrong snapshot begins again with the first event.
   */
  readonly onEvent?: ((event: RuntimeEvent) => void) | undefined
}

const anySeq = option.numberFrom(1, { whole: true })
const foldOptions = option.fields<FoldOptions>({
  snapshots: option.maybe(option.trueOrFalse),
  onEvent: option.maybe(option.anyFunction),
})

/**
 * Returns the state of a run right after its event `seq`, or after its last one, without any call. It equals the state
 * that the live run had there. If the store keeps snapshots, it reads only the events after the nearest one, and a long
 * fold leaves a new one, if the ledger was opened for writing. A snapshot is bound to its history and to the code that
 * made it; a damaged one is ignored. Rejects with `RunNotFoundError` if the ledger has no such run, with
 * `ConfigurationError` if the run has no such event, and with what `evolve` throws if an event is not legal.
 */
export async function foldTo(
  ledger: Ledger,
  runId: RunId,
  seq?: number,
  options: FoldOptions = {},
): Promise<RunState> {
  const { state } = await foldWithOptions('foldTo', { ledger, runId, seq, options })
  return state
}

/**
 * The same, with what the events of the run say over all its turns: who had the conversation, which calls there were, how they
 * ended. A snapshot holds it beside the state.
 */
export async function outlineTo(
  ledger: Ledger,
  runId: RunId,
  seq?: number,
  options: FoldOptions = {},
): Promise<FoldedRun> {
  return await foldWithOptions('outlineTo', { ledger, runId, seq, options })
}

interface FoldGiven {
  readonly ledger: Ledger
  readonly runId: RunId
  readonly seq: number | undefined
  readonly options: FoldOptions
}

async function foldWithOptions(
  subject: string,
  { ledger, runId, seq, options }: FoldGiven,
): Promise<FoldedRun> {
  requireLedger(subject, ledger)
  requireTextId(subject, runId)
  if (seq !== undefined) requireOptions(subject, anySeq, seq, 'seq')
  requireOptions(subject, foldOptions, options)
  const head = await ledger.head(runId)
  if (head === undefined) throw new RunNotFoundError(runId)
  const toSeq = seq ?? head.seq
  if (!Number.isInteger(toSeq) || toSeq < 1 || toSeq > head.seq) {
    throw new ConfigurationError(
      `Run ${runId} has the events 1 to ${head.seq}, so there is no state at seq ${toSeq}. Name one of them.`,
    )
  }
  const { snapshots: usesSnapshots = true, onEvent: onFolded } = options
  const folded = await foldStoredRun(ledger, runId, {
    toSeq,
    usesSnapshots,
    ...(onFolded && { onFolded }),
  })
  if (folded === undefined) throw new RunNotFoundError(runId)
  return folded
}

/**
 * Returns how many events a fold to `seq` reads, from the nearest snapshot on; `undefined` where the store keeps no
 * snapshots.
 */
export async function eventsToFold(ledger: Ledger, runId: RunId, seq: number): Promise<number | undefined> {
  requireLedger('eventsToFold', ledger)
  const database = databaseOf(ledger)
  if (database === undefined) return undefined
  const places = await listPlacesOrNone(database, runId)
  return seq - (places.findLast((place) => place <= seq) ?? 0)
}

async function listPlacesOrNone(database: StoreDatabase, runId: RunId): Promise<readonly number[]> {
  try {
    return await listSnapshotPlaces(database, runId)
  } catch (error) {
    // What cannot be read is done without.
    if (error instanceof TallystickError) return []
    throw error
  }
}

/** How far a fold goes, and which events it passes on. */
export interface FoldPlan {
  /** The last event that is folded. */
  readonly toSeq: number
  /** Begin at the nearest snapshot of the store. */
  readonly usesSnapshots: boolean
  /** `onEvent` gets every event after this one, also those that a snapshot covers. */
  readonly onEventAfter?: number
  readonly onEvent?: (event: RuntimeEvent) => void
  /** Gets every event that is folded, from the first on again where the fold begins again without its snapshot. */
  readonly onFolded?: (event: RuntimeEvent) => void
}

/** A fold of fewer events takes no longer than the search for a snapshot. */
const longSeqMin = 64

/** A fold of so many events, or of so much text, keeps its state as a snapshot. */
const eventsFar = 200
const charactersFar = 1024 * 1024

/** A settled run is continued from there: then fewer events are enough. */
const settledEventsFar = 50

/**
 * Folds a run up to an event, from the nearest snapshot on; `undefined` if the run has no events. Throws
 * what `evolve` throws where an event is not legal.
 */
export async function foldStoredRun(
  ledger: Ledger,
  runId: RunId,
  plan: FoldPlan,
): Promise<FoldedRun | undefined> {
  const { toSeq, onEventAfter = Infinity } = plan
  const snapshots = await openSnapshots(ledger, runId, plan)
  // A snapshot spares nothing where `onEvent` gets every event from the first on.
  const begun = onEventAfter > 0 ? await snapshots?.nearest(toSeq) : undefined
  const fold = new MeasuredFold(begun, plan)
  const fromSeq = Math.min(fold.begunSeq, onEventAfter) + 1
  try {
    await eachEvent(ledger.read(runId, { fromSeq, toSeq }), (event) => {
      snapshots?.handle(event)
      fold.take(event)
    })
  } catch (error) {
    // A forged snapshot costs only time. What the caller throws is thrown at once.
    if (begun === undefined || plan.onEvent || fold.hasCallerThrown) throw error
    return await foldStoredRun(ledger, runId, { ...plan, usesSnapshots: false })
  }
  const { run } = fold
  if (run && fold.isFar) await snapshots?.keep(run)
  return run
}

async function openSnapshots(ledger: Ledger, runId: RunId, plan: FoldPlan): Promise<Snapshots | undefined> {
  const database = databaseOf(ledger)
  if (database === undefined || !plan.usesSnapshots || plan.toSeq < longSeqMin) return undefined
  const snapshots = new Snapshots(database, ledger, runId)
  await snapshots.begin()
  return snapshots
}

/** A fold that counts how far it came, which decides whether its state is worth a snapshot. */
class MeasuredFold {
  readonly begunSeq: number
  #state: RunState | undefined
  readonly #outline: OutlineFold
  #seq: number
  readonly #plan: FoldPlan
  #events = 0
  #characters = 0
  #hasCallerThrown = false

  constructor(begun: FoldedRun | undefined, plan: FoldPlan) {
    this.#state = begun?.state
    this.#outline = new OutlineFold(begun?.outline)
    this.begunSeq = begun?.state.seq ?? 0
    this.#seq = this.begunSeq
    this.#plan = plan
  }

  take(event: RuntimeEvent): void {
    const { onEvent, onEventAfter = Infinity } = this.#plan
    if (event.seq > this.#seq) {
      this.#state = evolve(this.#state, event)
      this.#outline.add(event)
      this.#seq = event.seq
      this.#passOn(event)
      this.#events++
      // What a run begins with is in no snapshot of it. Where it came far already, nothing depends on how much was said.
      if (this.#events < eventsFar && event.type !== 'history_carried') {
        this.#characters += countCharacters(event)
      }
    }
    if (event.seq > onEventAfter) onEvent?.(event)
  }

  #passOn(event: RuntimeEvent): void {
    try {
      this.#plan.onFolded?.(event)
    } catch (error) {
      this.#hasCallerThrown = true
      throw error
    }
  }

  /** Set if the caller's function threw, which ends the fold. */
  get hasCallerThrown(): boolean {
    return this.#hasCallerThrown
  }

  get run(): FoldedRun | undefined {
    const state = this.#state
    return state && { state, outline: this.#outline.outline }
  }

  get isFar(): boolean {
    if (this.#events >= eventsFar || this.#characters >= charactersFar) return true
    const state = this.#state
    return this.#events >= settledEventsFar && state !== undefined && isSettled(state)
  }
}

function isSettled(state: RunState): boolean {
  return state.phase === 'done' || isSuspended(state)
}

/** How much text a value holds, keys not counted. */
function countCharacters(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let characters = 0
  for (const item of Object.values(value)) characters += countCharacters(item)
  return characters
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
export function rebuiltRequest(state: RunState): RebuiltRequest {
  requireOptions('rebuiltRequest', runState, state, 'the state')
  if (state.phase === 'streaming') {
    const { model, requestDigest } = state.attempt
    return { model, requestDigest, request: modelRequest(state), ...toAdditions(state, model) }
  }
  const { instructions, tools, output } = state.definition
  const { model, toolChoice, maxOutputTokens } = findNextCall(state)
  return {
    model,
    request: {
      instructions,
      messages: transcript(state),
      tools,
      toolChoice,
      parallelToolCalls: callsInParallel(state),
      ...omitUndefined({
        maxOutputTokens,
        outputSchema: output?.schema,
        modelSettings: writingSettings(state),
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
