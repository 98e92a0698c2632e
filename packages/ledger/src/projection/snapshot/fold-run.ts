import { type Ledger, type RunId, type RunState, type RuntimeEvent } from '@tallystick/core'
import { evolve, isSuspended } from '@tallystick/core/machine'
import { projectionDatabaseOf } from '../tables/projection-database.ts'
import { Snapshots } from './snapshots.ts'

/** What a fold is to do beside folding. */
export interface FoldPlan {
  /** The last event that is folded. */
  readonly toSeq: number
  /** Whether it goes by the snapshots that the store has. */
  readonly usesSnapshots: boolean
  /** Hears every event after this one too, whatever the fold itself can leave out. */
  readonly onEventAfter?: number
  readonly onEvent?: (event: RuntimeEvent) => void
}

/** Below this, looking for a snapshot takes as long as doing without. */
const longSeqMin = 64

/** A fold that has come this far keeps what it came to. */
const eventsFar = 200
const charactersFar = 1024 * 1024

/** Where a run rests, it is taken up: then less is far enough. */
const settledEventsFar = 50

/**
 * The state of a run after an event, from the nearest snapshot on; `undefined` where the run has no events. Throws what
 * `evolve` throws where an event is not legal.
 */
export async function foldRun(ledger: Ledger, runId: RunId, plan: FoldPlan): Promise<RunState | undefined> {
  const { toSeq, onEventAfter = Infinity } = plan
  const snapshots = await snapshotsFor(ledger, runId, plan)
  // Who hears everything from the first event on spares nothing.
  const begun = onEventAfter > 0 ? await snapshots?.nearest(toSeq) : undefined
  const fold = new Fold(begun, plan)
  const fromSeq = Math.min(fold.begunSeq, onEventAfter) + 1
  try {
    for await (const event of ledger.read(runId, { fromSeq, toSeq })) {
      snapshots?.handle(event)
      fold.take(event)
    }
  } catch (error) {
    // A forged snapshot costs only time.
    if (begun === undefined || plan.onEvent) throw error
    return await foldRun(ledger, runId, { ...plan, usesSnapshots: false })
  }
  if (fold.isFar) await snapshots?.keep(fold.state)
  return fold.state
}

async function snapshotsFor(ledger: Ledger, runId: RunId, plan: FoldPlan): Promise<Snapshots | undefined> {
  const database = projectionDatabaseOf(ledger)
  if (database === undefined || !plan.usesSnapshots || plan.toSeq < longSeqMin) return undefined
  const snapshots = new Snapshots(database, ledger, runId)
  await snapshots.begin()
  return snapshots
}

/** One fold on its way. */
class Fold {
  state: RunState | undefined
  readonly begunSeq: number
  readonly #plan: FoldPlan
  #events = 0
  #characters = 0

  constructor(begun: RunState | undefined, plan: FoldPlan) {
    this.state = begun
    this.begunSeq = begun?.seq ?? 0
    this.#plan = plan
  }

  take(event: RuntimeEvent): void {
    const { onEvent, onEventAfter = Infinity } = this.#plan
    if (event.seq > (this.state?.seq ?? 0)) {
      this.state = evolve(this.state, event)
      this.#events++
      // What a run begins with is in no snapshot of it.
      if (this.#characters < charactersFar && event.type !== 'history_carried')
        this.#characters += charactersOf(event)
    }
    if (event.seq > onEventAfter) onEvent?.(event)
  }

  get isFar(): boolean {
    if (this.#events >= eventsFar || this.#characters >= charactersFar) return true
    const { state } = this
    return this.#events >= settledEventsFar && state !== undefined && isSettled(state)
  }
}

function isSettled(state: RunState): boolean {
  return state.phase === 'done' || isSuspended(state)
}

/** How much text a value holds, keys not counted. */
function charactersOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let characters = 0
  for (const item of Object.values(value)) characters += charactersOf(item)
  return characters
}
