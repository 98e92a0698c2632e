import { type Ledger, type Message, type RunId, type RunState, type RuntimeEvent } from '@tallystick/core'
import { foldVersion, openTurnCalls, deserializeState, serializeState } from '@tallystick/core/machine'
import { readMessages } from '@tallystick/core/internal'
import { toCanonicalJson, type Json, type JsonObject, parseToolCallId } from '@tallystick/core/vocabulary'
import { digestText } from '../format/chain.ts'
import { perform, type StoreDatabase } from '../store/database.ts'
import { orElse } from '../store/store.ts'

/** A snapshot as a store keeps it: the state of a run after one of its events. */
export interface StoredSnapshot {
  readonly seq: number
  /** Canonical JSON. */
  readonly state: string
  /** The hash of that event: of another history it is another one. */
  readonly headHash: string
  /** Over all of this, the run and the code that folded it. */
  readonly seal: string
}

/** A history that begins with the messages that the run began with: they are kept once, with its events. */
interface BegunHistory {
  readonly carried: number
  readonly messages: readonly Message[]
}

/** The state of a run that began with `carried`, as text. The same state gives the same text. */
export function encodeSnapshot(state: RunState, carried: readonly Message[]): string {
  const json = serializeState(state)
  const messages = readMessages(state.history)
  const changed = carried.findIndex((message, index) => message !== messages[index])
  const shared = changed < 0 ? carried.length : changed
  if (shared === 0) return toCanonicalJson(json)
  const history = { carried: shared, messages: messages.slice(shared) }
  return toCanonicalJson({ ...json, history })
}

/** Binds the text of a snapshot to its run, its place and the code that made it. */
export function sealSnapshot(runId: RunId, { seq, state, headHash }: Omit<StoredSnapshot, 'seal'>): string {
  const of = toCanonicalJson({ runId, seq, headHash, reducer: snapshotVersion })
  return digestText(`snapshot ${of}\n${state}`)
}

/** The state that a snapshot holds; `undefined` if it is not as it was written. */
export async function decodeSnapshot(
  runId: RunId,
  snapshot: StoredSnapshot,
  carried: () => Promise<readonly Message[]>,
): Promise<RunState | undefined> {
  if (sealSnapshot(runId, snapshot) !== snapshot.seal) return undefined
  const json = JSON.parse(snapshot.state) as JsonObject
  const history = json['history'] as unknown as readonly Message[] | BegunHistory
  const messages =
    'carried' in history ? [...(await carried()).slice(0, history.carried), ...history.messages] : history
  const state = deserializeState({ ...json, history: messages as unknown as Json })
  return hasIds(runId, state) ? state : undefined
}

/**
 * Snapshots are outside the chain, so any writer of the database may have made them: checks the ids that commands are
 * made of.
 */
function hasIds(runId: RunId, state: RunState): boolean {
  const calls = openTurnCalls(state).map(({ toolCallId }) => toolCallId)
  return state.runId === runId && calls.every((call) => parseToolCallId(call) !== undefined)
}

/** The version that a snapshot names as its `reducer`: others are ignored. */
export const snapshotVersion: string = `fold ${foldVersion}`

/** A state that takes more is not kept: most of it is large contents, which would be stored once more. */
const maxStateCharacters = 4 * 1024 * 1024

/** The snapshots of one run, for one fold. If they fail, the fold ignores them. */
export class Snapshots {
  readonly #database: StoreDatabase
  readonly #ledger: Ledger
  readonly #runId: RunId
  /** The messages that the run began with, once they were read. */
  #carried: readonly Message[] = []
  #forgotten: number | undefined

  constructor(database: StoreDatabase, ledger: Ledger, runId: RunId) {
    this.#database = database
    this.#ledger = ledger
    this.#runId = runId
  }

  /** Call it before the first event is read: content that is removed from here on is in no snapshot that `keep` writes. */
  async begin(): Promise<void> {
    if (this.#database.isWritable) this.#forgotten = await orElse(undefined, () => this.#timesForgotten())
  }

  /** Reads the last snapshot that is not after an event. */
  async findLast(toSeq: number): Promise<RunState | undefined> {
    return await orElse(undefined, async () => {
      const snapshot = await findSnapshot(this.#database, this.#runId, toSeq)
      return snapshot && (await this.#soundState(snapshot))
    })
  }

  /** Writes a snapshot, which replaces an earlier one, unless content was removed since `begin`. */
  async keep(state: RunState): Promise<void> {
    const forgotten = this.#forgotten
    // A snapshot would outlive the key that content about a subject is sealed with.
    const isOpen = state.subject === undefined && state.removedFrom === undefined
    if (forgotten === undefined || !isOpen) return
    await orElse(undefined, async () => {
      const places = await listSnapshotPlaces(this.#database, this.#runId)
      if (places.some((place) => place > state.seq)) return
      const text = encodeSnapshot(state, this.#carried)
      const headHash = text.length > maxStateCharacters ? undefined : await this.#hashAt(state.seq)
      if (headHash === undefined) return
      const seal = sealSnapshot(this.#runId, { seq: state.seq, state: text, headHash })
      const row = {
        run_id: this.#runId,
        reducer: snapshotVersion,
        seq: state.seq,
        state: text,
        head_hash: headHash,
        seal,
      }
      await this.#database.change(function* (queries) {
        const { db, isPostgres } = queries
        const known = db.selectFrom('projection').select('revision').where('name', '=', 'runs')
        // A removal waits for it, and then finds the snapshot.
        const [mark] = yield* perform(queries, isPostgres ? known.forShare() : known)
        if (mark?.revision !== forgotten) return
        const { state, head_hash } = row
        yield* perform(
          queries,
          db
            .insertInto('snapshot')
            .values(row)
            .onConflict((on) =>
              on.columns(['run_id', 'reducer', 'seq']).doUpdateSet({ state, head_hash, seal }),
            ),
        )
        yield* perform(
          queries,
          db
            .deleteFrom('snapshot')
            .where('run_id', '=', row.run_id)
            .where((is) => is.or([is('reducer', '<>', snapshotVersion), is('seq', '<', row.seq)])),
        )
      })
    })
  }

  /** A fold has come to an event. */
  handle(event: RuntimeEvent): void {
    if (event.type === 'history_carried') this.#carried = event.messages
  }

  /** A sealed text that is not a state counts as no snapshot. */
  async #soundState(snapshot: StoredSnapshot): Promise<RunState | undefined> {
    try {
      return await decodeSnapshot(this.#runId, snapshot, async () => {
        this.#carried = await readCarried(this.#ledger, this.#runId)
        return this.#carried
      })
    } catch {
      return undefined
    }
  }

  async #hashAt(seq: number): Promise<string | undefined> {
    const [row] = await this.#database.ask<{ readonly hash: string }>(
      'select hash from @.event where run_id = $1 and seq = $2',
      [this.#runId, seq],
    )
    return row?.hash
  }

  async #timesForgotten(): Promise<number | undefined> {
    const [row] = await this.#database.ask<{ readonly revision: number }>(
      `select revision from @.projection where name = 'runs'`,
    )
    return row?.revision
  }
}

/** The last snapshot of this code that is not after an event, and of the history that the run has. */
export async function findSnapshot(
  database: StoreDatabase,
  runId: RunId,
  upTo: number,
): Promise<StoredSnapshot | undefined> {
  const [row] = await database.ask<StoredSnapshot>(
    `select snapshot.seq, state, head_hash as "headHash", snapshot.seal from @.snapshot as snapshot
      join @.event as event
        on event.run_id = snapshot.run_id and event.seq = snapshot.seq and event.hash = snapshot.head_hash
      where snapshot.run_id = $1 and reducer = $2 and snapshot.seq <= $3 order by snapshot.seq desc limit 1`,
    [runId, snapshotVersion, upTo],
  )
  return row
}

/** The events after which a run has snapshots of this code, in order. */
export async function listSnapshotPlaces(database: StoreDatabase, runId: RunId): Promise<readonly number[]> {
  const rows = await database.ask<{ readonly seq: number }>(
    'select seq from @.snapshot where run_id = $1 and reducer = $2 order by seq',
    [runId, snapshotVersion],
  )
  return rows.map(({ seq }) => seq)
}

/** The history that a run began with is recorded right after `run_started`, if it had one. */
async function readCarried(ledger: Ledger, runId: RunId): Promise<readonly Message[]> {
  for await (const event of ledger.read(runId, { toSeq: 2 })) {
    if (event.type === 'history_carried') return event.messages
  }
  return []
}
