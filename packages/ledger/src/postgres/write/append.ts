import { LedgerDamagedError, RunNotFoundError, type RunId, type RuntimeEvent } from '@tallystick/core'
import {
  drivenByOther,
  emptyHead,
  endsRun,
  onceKeyOf,
  placeTaken,
  requireHead,
  requireWellFormed,
  secondFact,
  sessionPlaceOf,
  unreadInbox,
} from '@tallystick/core/store-kit'
import type {
  AppendOptions,
  ExpectedHead,
  Head,
  Lease,
  LeaseClaim,
  TakeOverClaim,
} from '@tallystick/core/vocabulary'
import { isRunId } from '../../record/stored-ids.ts'
import { genesisHash } from '../../record/chain.ts'
import { droppedRunConflict } from '../../removal/dropped-run.ts'
import { factNumberOf } from '../../record/segments/fact-number.ts'
import { linkRows } from '../../record/linked-row.ts'
import type { Sealer } from '../../content/payload/encrypted-bytes.ts'
import type { StoredBody } from '../../content/event/stored-body.ts'
import { isStored, storableRows, type StorableRow } from '../../content/event/stored-rows.ts'
import { appendStatement, type AppendItem } from './append-group.ts'
import type { Connections } from '../connection/connections.ts'
import { eventRange } from '../rows/event-batch.ts'
import { GroupCommit } from './group-commit.ts'
import { KnownHeads, type KnownHead } from './known-heads.ts'
import type { BegunHistory, PostgresHistories } from './histories.ts'
import { isMissingReference, isUnread, refusingConstraint } from '../connection/postgres-failure.ts'
import { isStorable } from '../connection/storable-name.ts'
import type { StatementTexts } from '../rows/statements.ts'

/** How many groups of appends are under way at a time. */
const lanes = 4

/** How often an append looks again that was refused at a head which is the one it expects. */
const maxTries = 3

/** Events to append, and the rows that they make. */
interface Batch {
  readonly runId: RunId
  readonly expected: ExpectedHead
  readonly events: readonly RuntimeEvent[]
  readonly rows: readonly StorableRow[]
  readonly options: AppendOptions
  readonly sealer: Sealer | undefined
}

interface HeadRow {
  readonly head_seq: number
  readonly head_hash: Uint8Array
  readonly epoch: number
}

/** The members of the port that move heads. */
export class Appender {
  readonly #connections: Connections
  readonly #texts: StatementTexts
  readonly #histories: PostgresHistories
  readonly #known = new KnownHeads()
  readonly #group: GroupCommit<AppendItem, boolean>
  /** Lazy appends that were acknowledged, and how many of them a barrier comes after. */
  #lazy = 0
  #hardened = 0

  constructor(connections: Connections, texts: StatementTexts, histories: PostgresHistories) {
    this.#connections = connections
    this.#texts = texts
    this.#histories = histories
    this.#group = new GroupCommit(lanes, (group) => this.#appendGroup(group))
  }

  async append(
    runId: RunId,
    expected: ExpectedHead,
    events: readonly RuntimeEvent[],
    { sealer, ...options }: AppendOptions & { readonly sealer?: Sealer | undefined },
  ): Promise<Head> {
    requireWellFormed(runId, expected, events)
    const rows = storableRows(events, sealer)
    const batch = { runId, expected, events, rows, options, sealer }
    const before = this.#lazy
    const head = await (events.length === 0 ? this.#settle(batch) : this.#appendEvents(batch))
    if (options.durability === 'lazy') this.#lazy++
    else this.#hardened = Math.max(this.#hardened, before)
    return head
  }

  /** Raises the epoch of a run, durably. From then on the writer before can append nothing. */
  async acquire(runId: RunId, claim?: TakeOverClaim): Promise<Head> {
    const { holder = null, forMs = 0, from = null } = claim ?? {}
    for (;;) {
      const [row] = await this.#connections.rows<HeadRow>({
        name: 'tallystick acquire',
        text: this.#texts.acquire,
        values: [runId, holder, holder === null ? null : Math.ceil(forMs), from],
      })
      if (row) {
        const { seq, epoch } = this.#remember(runId, row)
        return { seq, epoch }
      }
      if ((await this.#head(runId)) === undefined) throw new RunNotFoundError(runId)
      const lease = await this.lease(runId)
      // It may have ended between the two looks.
      if (lease) throw drivenByOther(runId, lease)
    }
  }

  async lease(runId: RunId): Promise<Lease | undefined> {
    if (!isRunId(runId)) return undefined
    const text = this.#texts.lease
    const [row] = await this.#connections.rows<Lease>({ name: 'tallystick lease', text, values: [runId] })
    return row && { holder: row.holder, leftMs: row.leftMs }
  }

  async renew(runIds: readonly RunId[], { holder, forMs }: LeaseClaim): Promise<readonly RunId[]> {
    if (runIds.length === 0) return []
    const values = [holder, Math.ceil(forMs), runIds.filter(isRunId)]
    const text = this.#texts.renew
    const rows = await this.#connections.rows<{ readonly run_id: RunId }>({
      name: 'tallystick renew',
      text,
      values,
    })
    const renewed = new Set(rows.map(({ run_id }) => run_id))
    return runIds.filter((runId) => renewed.has(runId))
  }

  async release(runId: RunId, holder: string): Promise<void> {
    if (!isRunId(runId)) return
    const text = this.#texts.release
    await this.#connections.rows({ name: 'tallystick release', text, values: [runId, holder] })
  }

  /** Makes every lazy append durable. */
  async harden(): Promise<void> {
    if (this.#hardened === this.#lazy) return
    const before = this.#lazy
    await this.#connections.rows({ text: this.#texts.harden, values: [] })
    this.#hardened = Math.max(this.#hardened, before)
  }

  async #appendEvents(batch: Batch): Promise<Head> {
    const { runId, expected, events, options } = batch
    // Not the head of now: a writer that was relieved in between must not learn its successor's epoch.
    const after = { seq: expected.expectedSeq + events.length, epoch: expected.epoch }
    for (let tries = 0; tries < maxTries; tries++) {
      const hash = await this.#swap(batch)
      if (hash !== undefined) {
        this.#known.set(runId, { ...after, hash })
        return after
      }
      this.#known.forget(runId)
      if (await this.#isAppendedAlready(batch)) {
        // The recorded append may have been lazy.
        if (options.durability === 'barrier')
          await this.#connections.rows({ text: this.#texts.harden, values: [] })
        return after
      }
      requireHead(runId, (await this.#head(runId)) ?? emptyHead, expected)
    }
    throw new LedgerDamagedError(
      `Run ${runId} ends where an append expects it, and yet its row refuses the append. It is damaged, or a client ` +
        'of the database changes it back and forth. Run verify on the ledger, and restore a copy.',
    )
  }

  /** Answers the hash of the new head; `undefined` where the head is not the expected one. */
  async #swap({ runId, expected, events, rows, options, sealer }: Batch): Promise<Uint8Array | undefined> {
    const previousHash = await this.#hashAt(runId, expected)
    if (previousHash === undefined) return undefined
    const linked = linkRows(previousHash, rows)
    const histories: (BegunHistory | undefined)[] = []
    for (const { history } of rows) histories.push(history && (await this.#histories.begun(history)))
    const swapped = await this.#submit({
      runId,
      ...expected,
      previousHash,
      linked,
      takes: (options.consumedInboxKeys ?? []).filter(isStorable),
      durability: options.durability,
      events: events.length,
      bytes: rows.reduce((sum, row, index) => sum + bytesOf(row, histories[index]), 0),
      contents: rows.map(({ contents }) => contents),
      histories,
      isSealed: sealer !== undefined,
      lease: endsRun(events) ? { holder: '', forMs: 0 } : (options.lease ?? null),
    })
    return swapped ? linked.at(-1)?.hash : undefined
  }

  /** The events before an append may be removed while it is under way: then it reads them again. */
  async #submit(item: AppendItem): Promise<boolean> {
    try {
      return await this.#group.submit(item)
    } catch (error) {
      if (isMissingReference(error)) return false
      throw error
    }
  }

  async #hashAt(runId: RunId, { expectedSeq, epoch }: ExpectedHead): Promise<Uint8Array | undefined> {
    if (expectedSeq === 0) return epoch === emptyHead.epoch ? genesisHash : undefined
    const known = this.#known.get(runId)
    const head = known?.seq === expectedSeq && known.epoch === epoch ? known : await this.#head(runId)
    return head?.seq === expectedSeq && head.epoch === epoch ? head.hash : undefined
  }

  async #appendGroup(group: readonly AppendItem[]): Promise<readonly boolean[]> {
    try {
      const statement = appendStatement(this.#texts, group)
      const [row] = await this.#connections.rows<{ places: readonly (number | null)[] }>(statement)
      return group.map((_item, index) => row?.places[index] != null)
    } catch (error) {
      const [only] = group
      throw group.length === 1 && only ? await this.#refusal(only, error) : error
    }
  }

  /** Why an append whose head was right was refused: for a fact that is recorded already, if that is the reason. */
  async #refusal({ runId, linked }: AppendItem, error: unknown): Promise<unknown> {
    if (isUnread(error)) return unreadInbox(runId)
    const constraint = refusingConstraint(error)
    const place = sessionPlaceOf(linked.flatMap(({ events }) => events))
    if (constraint === 'run_session' && place) return placeTaken(runId, place)
    if (constraint !== 'event_once' && constraint !== 'fact_key')
      return droppedRunConflict(error, runId) ?? error
    return secondFact(runId, await this.#recordedFact(runId, linked))
  }

  /** The name of the first fact that is recorded already, or is stated twice. */
  async #recordedFact(runId: RunId, linked: AppendItem['linked']): Promise<string> {
    const facts = linked
      .flatMap(({ events }) => events)
      .flatMap((event) => {
        const onceKey = onceKeyOf(event)
        return onceKey === undefined ? [] : [{ onceKey, number: factNumberOf(event) }]
      })
    const onceKeys = facts.map(({ onceKey }) => onceKey)
    const named = await this.#connections.rows<{ once_key: string }>({
      text: this.#texts.onceKeys,
      values: [runId, onceKeys],
    })
    const numbered = await this.#connections.rows<{ number: number }>({
      text: this.#texts.facts,
      values: [runId, facts.flatMap(({ number }) => number ?? [])],
    })
    const names = new Set(named.map(({ once_key }) => once_key))
    const numbers = new Set(numbered.map(({ number }) => number))
    const second = facts.find(({ onceKey, number }, index) => {
      const isRecorded = names.has(onceKey) || (number !== undefined && numbers.has(number))
      return isRecorded || onceKeys.indexOf(onceKey) !== index
    })
    return second?.onceKey ?? 'a fact'
  }

  /** An append without events: for the entries that it takes, and for the head that it expects. */
  async #settle({ runId, expected, options, sealer }: Batch): Promise<Head> {
    const { expectedSeq, epoch } = expected
    const isHeld =
      [expectedSeq, epoch].every(Number.isSafeInteger) &&
      (await this.#takeAt(runId, expected, { ...options, isSealed: sealer !== undefined }))
    if (!isHeld) requireHead(runId, (await this.#head(runId)) ?? emptyHead, expected)
    return { seq: expectedSeq, epoch }
  }

  /** Answers whether the run is there and its head is the expected one. */
  async #takeAt(
    runId: RunId,
    { expectedSeq, epoch }: ExpectedHead,
    { durability, consumedInboxKeys: takes = [], isSealed }: AppendOptions & { readonly isSealed: boolean },
  ): Promise<boolean> {
    const [row] = await this.#connections.rows<{ runs: number }>({
      name: `tallystick settle ${durability}`,
      text: this.#texts.settle[durability],
      values: [runId, expectedSeq, epoch, takes.filter(isStorable), isSealed],
    })
    return row?.runs === 1
  }

  /** Whether these very events were written before: then only their acknowledgement was lost. */
  async #isAppendedAlready({ runId, expected, events, sealer }: Batch): Promise<boolean> {
    const range = { runId, fromSeq: expected.expectedSeq + 1, toSeq: expected.expectedSeq + events.length }
    let index = 0
    const source = {
      connections: this.#connections,
      texts: this.#texts,
      // Bytes are compared with bytes.
      withDecoding: <Row>(rows: readonly Row[]): Promise<readonly Row[]> => Promise.resolve(rows),
    }
    for await (const stored of eventRange(source, range)) {
      const { firstSeq = stored.seq, seq } = stored
      const due = events.slice(index, index + seq - firstSeq + 1)
      if (!isStored(stored, due, sealer)) return false
      index += due.length
    }
    return index === events.length
  }

  async #head(runId: RunId): Promise<KnownHead | undefined> {
    const [row] = await this.#connections.rows<HeadRow>({
      name: 'tallystick run',
      text: this.#texts.run,
      values: [runId],
    })
    return row && this.#remember(runId, row)
  }

  #remember(runId: RunId, { head_seq: seq, head_hash: hash, epoch }: HeadRow): KnownHead {
    const head = { seq, epoch, hash }
    this.#known.set(runId, head)
    return head
  }
}

function bytesOf({ bytes, contents }: StoredBody, history: BegunHistory | undefined): number {
  const own = bytes.length + (history?.piece?.body.length ?? 0)
  return contents.reduce((sum, content) => sum + content.bytes.length, own)
}
