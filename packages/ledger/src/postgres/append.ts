import { LedgerDamagedError, type RunId, RunNotFoundError } from '@tallystick/core'
import {
  drivenByOther,
  emptyHead,
  isStorableName,
  onceKeyOf,
  placeTaken,
  requireHead,
  secondFact,
  sessionPlaceOf,
  unreadInbox,
} from '@tallystick/core/store-kit'
import type { ExpectedHead, Head, TakeOverClaim } from '@tallystick/core/vocabulary'
import { genesisHash } from '../format/chain.ts'
import { eventColumns, type EventRow, isRunId, isSameEvent, linkEvents } from '../format/event-row.ts'
import type { CarriedHistory, HistoryRow } from '../format/history.ts'
import { type AppendRequest, droppedRunConflict } from '../store/store.ts'
import {
  type Connections,
  isDropped,
  isMissingReference,
  isUnread,
  refusingConstraint,
  type Statement,
} from './connections.ts'
import type { PostgresRecords, RunRow } from './records.ts'
import { durabilityText, inSchema, nowText } from './schema.ts'

/** One append that waits for its turn. */
export interface Queued {
  readonly runId: string
  /** Rows and bytes that it adds to a group. */
  readonly events: number
  readonly bytes: number
}

/** What a group may hold; one append alone may be larger. */
const maxRuns = 64
const maxEvents = 1_024
const maxBytes = 4 * 1024 * 1024

interface Waiting<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/**
 * Lets appends of many runs share statements and commits. No append waits for others to join it: while all lanes are
 * busy, new appends queue up, and the next free lane takes all queued ones as one group. Each run has one append
 * under way at a time, so that groups of one process never wait for each other.
 */
export class GroupCommit<Item extends Queued, Result> {
  readonly #commit: (group: readonly Item[]) => Promise<readonly Result[]>
  readonly #lanes: number
  readonly #busyRuns = new Set<string>()
  #waiting: Waiting<Item, Result>[] = []
  #busyLanes = 0

  /** `commit` answers for each append of a group in its order; where it rejects for several, it is asked one by one. */
  constructor(lanes: number, commit: (group: readonly Item[]) => Promise<readonly Result[]>) {
    this.#lanes = lanes
    this.#commit = commit
  }

  submit(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      this.#fill()
    })
  }

  #fill(): void {
    while (this.#busyLanes < this.#lanes) {
      const group = this.#nextGroup()
      if (group.length === 0) return
      this.#busyLanes++
      for (const { item } of group) this.#busyRuns.add(item.runId)
      void this.#carryOut(group).finally(() => {
        this.#busyLanes--
        for (const { item } of group) this.#busyRuns.delete(item.runId)
        this.#fill()
      })
    }
  }

  #nextGroup(): readonly Waiting<Item, Result>[] {
    const group: Waiting<Item, Result>[] = []
    const left: Waiting<Item, Result>[] = []
    const runs = new Set<string>()
    let [events, bytes] = [0, 0]
    for (const waiting of this.#waiting) {
      const { item } = waiting
      const fits =
        group.length === 0 ||
        (group.length < maxRuns && events + item.events <= maxEvents && bytes + item.bytes <= maxBytes)
      if (!fits || runs.has(item.runId) || this.#busyRuns.has(item.runId)) left.push(waiting)
      else {
        group.push(waiting)
        events += item.events
        bytes += item.bytes
      }
      // What comes later of the same run waits for what came before.
      runs.add(item.runId)
    }
    this.#waiting = left
    return group
  }

  async #carryOut(group: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#commit(group.map(({ item }) => item))
      for (const [index, { resolve }] of group.entries()) resolve(results[index] as Result)
    } catch (error) {
      const [only, ...others] = group
      if (only && others.length === 0) return only.reject(error)
      // One of them is at fault, and the others must not suffer for it.
      for (const waiting of group) await this.#carryOut([waiting])
    }
  }
}

/** The types of elements, as the catalogue of every Postgres numbers them. */
const elementTypes = { int8: 20, text: 25 } as const

const headBytes = 20
const lengthBytes = 4
const int8Bytes = 8

/** An array parameter in the binary form of the protocol, which takes less time than text on both sides. */
function arrayHead(type: keyof typeof elementTypes, count: number, bytes: number): Buffer {
  const array = Buffer.allocUnsafe(headBytes + bytes)
  // One dimension, no flag, the type, and of the dimension its length and where it begins.
  array.writeInt32BE(1, 0)
  array.writeInt32BE(0, 4)
  array.writeInt32BE(elementTypes[type], 8)
  array.writeInt32BE(count, 12)
  array.writeInt32BE(1, 16)
  return array
}

/** Whole numbers, of which each is a safe integer, and nulls. */
function int8Array(values: readonly (number | null)[]): Buffer {
  const nulls = values.filter((value) => value === null).length
  const array = arrayHead(
    'int8',
    values.length,
    values.length * (lengthBytes + int8Bytes) - nulls * int8Bytes,
  )
  let offset = headBytes
  if (nulls > 0) array.writeInt32BE(1, 4)
  for (const value of values) {
    if (value === null) {
      offset = array.writeInt32BE(-1, offset)
      continue
    }
    const high = Math.floor(value / 2 ** 32)
    offset = array.writeInt32BE(int8Bytes, offset)
    offset = array.writeInt32BE(high, offset)
    offset = array.writeUInt32BE(value - high * 2 ** 32, offset)
  }
  return array
}

/** Encodes texts and nulls. */
function textArray(values: readonly (string | null)[]): Buffer {
  let bytes = 0
  for (const value of values) bytes += lengthBytes + (value === null ? 0 : Buffer.byteLength(value))
  const array = arrayHead('text', values.length, bytes)
  let offset = headBytes
  for (const value of values) {
    const length = value === null ? -1 : array.write(value, offset + lengthBytes)
    array.writeInt32BE(length, offset)
    offset += lengthBytes + Math.max(length, 0)
    if (value === null) array.writeInt32BE(1, 4)
  }
  return array
}

/** How many groups of appends are under way at a time. */
const lanes = 4

/** How often an append looks again that was refused at a head which is the one it expects. */
const maxTries = 3

/** More runs than a process drives at a time. */
const maxKnown = 4_096

/** Where a run's chain ended when this process last saw it. */
type KnownHead = Head & { readonly hash: string }

/** Rows that are to come after a head, chained to it. */
export interface AppendItem extends Queued {
  readonly request: AppendRequest
  readonly previousHash: string
  readonly rows: readonly EventRow[]
  readonly history: { readonly name: string; readonly rows: readonly HistoryRow[] } | undefined
}

/** The members of the port that move heads. */
export class Appender {
  readonly #connections: Connections
  readonly #records: PostgresRecords
  readonly #texts: AppendTexts
  readonly #known = new Map<string, KnownHead>()
  readonly #group: GroupCommit<AppendItem, boolean>
  /** The last append of each run that has not ended yet. */
  readonly #underWay = new Map<string, Promise<Head>>()
  /** Lazy appends that were acknowledged, and how many of them a barrier comes after. */
  #lazy = 0
  #hardened = 0

  constructor(connections: Connections, records: PostgresRecords, quotedSchema: string) {
    this.#connections = connections
    this.#records = records
    this.#texts = new AppendTexts(quotedSchema)
    this.#group = new GroupCommit(lanes, (group) => this.#appendGroup(group))
  }

  /** Appends of a run follow each other in the order in which they come. */
  append(request: AppendRequest): Promise<Head> {
    const { runId } = request
    const before = this.#underWay.get(runId)
    const append = (): Promise<Head> => this.#append(request)
    const appended = before === undefined ? append() : before.then(append, append)
    const done = (): void => void (this.#underWay.get(runId) === appended && this.#underWay.delete(runId))
    this.#underWay.set(runId, appended)
    appended.then(done, done)
    return appended
  }

  async #append(request: AppendRequest): Promise<Head> {
    const before = this.#lazy
    const head = await (request.events.length === 0 ? this.#settle(request) : this.#appendEvents(request))
    if (request.durability === 'lazy') this.#lazy++
    else this.#hardened = Math.max(this.#hardened, before)
    return head
  }

  /** Raises the epoch of a run, durably, and takes its lease. From then on the writer before can append nothing. */
  async acquire(runId: RunId, claim?: TakeOverClaim): Promise<Head> {
    if (!isRunId(runId)) throw new RunNotFoundError(runId)
    const { holder = null, forMs = 0, from = null } = claim ?? {}
    const values = [runId, holder, holder === null ? null : Math.ceil(forMs), from]
    for (;;) {
      const [row] = await this.#connections.rows<Pick<RunRow, 'head_seq' | 'head_hash' | 'epoch'>>({
        ...this.#texts.acquire,
        values,
      })
      if (row) {
        this.#remember(runId, { seq: row.head_seq, epoch: row.epoch, hash: row.head_hash })
        return { seq: row.head_seq, epoch: row.epoch }
      }
      if ((await this.#records.run(runId)) === undefined) throw new RunNotFoundError(runId)
      const lease = await this.#records.lease(runId)
      // It may have ended between the two looks.
      if (lease) throw drivenByOther(runId, lease)
    }
  }

  /** Makes every lazy append durable. */
  async harden(): Promise<void> {
    if (this.#hardened === this.#lazy) return
    const before = this.#lazy
    await this.#records.harden()
    this.#hardened = Math.max(this.#hardened, before)
  }

  async #appendEvents(request: AppendRequest): Promise<Head> {
    const { runId, expected, events, durability } = request
    // Not the head of now: a writer that was relieved in between must not learn its successor's epoch.
    const after = { seq: expected.expectedSeq + events.length, epoch: expected.epoch }
    for (let tries = 0; tries < maxTries; tries++) {
      const hash = await this.#swap(request)
      if (hash !== undefined) {
        this.#remember(runId, { ...after, hash })
        return after
      }
      this.#known.delete(runId)
      if (await this.#isAppended(request)) {
        // The recorded append may have been lazy.
        if (durability === 'barrier') await this.#records.harden()
        return after
      }
      const run = await this.#records.run(runId)
      requireHead(runId, run ? { seq: run.head_seq, epoch: run.epoch } : emptyHead, expected)
      if (run?.ended_at != null && endOf(request) !== null) throw secondFact(runId, 'run_finished')
    }
    throw new LedgerDamagedError(
      `Run ${runId} ends where an append expects it, and yet its row refuses the append. It is damaged, or a client ` +
        'of the database changes it back and forth. Run verify on the ledger, and restore a copy.',
    )
  }

  /** Answers the hash of the new head; `undefined` where the head is not the expected one. */
  async #swap(request: AppendRequest): Promise<string | undefined> {
    const { runId, expected, events } = request
    const previousHash = await this.#hashAt(runId, expected)
    if (previousHash === undefined) return undefined
    if (events.filter(({ event }) => event.type === 'run_finished').length > 1)
      throw secondFact(runId, 'run_finished')
    const rows = linkEvents({ hash: previousHash, pos: 0 }, events)
    const carried = events.find(({ history }) => history)?.history
    const history = carried && { name: carried.name, rows: await this.#missingRows(carried) }
    const bytes = [...rows.map(({ body }) => body), ...(history?.rows.map(({ message }) => message) ?? [])]
    const item: AppendItem = {
      ...{ runId, request, previousHash, rows, history, events: rows.length },
      bytes: bytes.reduce((sum, text) => sum + text.length, 0),
    }
    return (await this.#submit(item)) ? rows.at(-1)?.hash : undefined
  }

  async #missingRows(history: CarriedHistory): Promise<readonly HistoryRow[]> {
    const known = await this.#records.knownMessages([...history.names()])
    return history.rowsAfter((name) => known.has(name))
  }

  /** Messages before it may be removed while an append is under way: then it reads them again. */
  async #submit(item: AppendItem): Promise<boolean> {
    try {
      return await this.#group.submit(item)
    } catch (error) {
      if (isMissingReference(error)) return false
      throw error
    }
  }

  async #hashAt(runId: RunId, { expectedSeq, epoch }: ExpectedHead): Promise<string | undefined> {
    if (expectedSeq === 0) return epoch === emptyHead.epoch ? genesisHash : undefined
    const known = this.#known.get(runId)
    if (known?.seq === expectedSeq && known.epoch === epoch) return known.hash
    const run = await this.#records.run(runId)
    return run?.head_seq === expectedSeq && run.epoch === epoch ? run.head_hash : undefined
  }

  async #appendGroup(group: readonly AppendItem[]): Promise<readonly boolean[]> {
    try {
      const rows = await this.#connections.rows<{ run_id: string }>(this.#texts.append(group))
      const swapped = new Set(rows.map(({ run_id }) => run_id))
      return group.map(({ runId }) => swapped.has(runId))
    } catch (error) {
      const [only] = group
      throw group.length === 1 && only ? await this.#refusal(only.request, error) : error
    }
  }

  /** Why an append whose head was right was refused. */
  async #refusal({ runId, events }: AppendRequest, error: unknown): Promise<unknown> {
    if (isUnread(error)) return unreadInbox(runId)
    if (isDropped(error)) return droppedRunConflict(runId)
    const constraint = refusingConstraint(error)
    const place = sessionPlaceOf(events.map(({ event }) => event))
    if (constraint === 'run_session' && place) return placeTaken(runId, place)
    return constraint === 'event_call' ? ((await this.#secondFactIn(runId, events)) ?? error) : error
  }

  /** The refusal of the first fact that is recorded already, or is stated twice. */
  async #secondFactIn(runId: RunId, events: AppendRequest['events']): Promise<Error | undefined> {
    const stated = new Set<string>()
    for (const { event, envelope } of events) {
      const onceKey = onceKeyOf(event)
      if (onceKey === undefined || envelope.attempt === null) continue
      if (stated.has(onceKey) || (await this.#records.isRecorded(envelope))) return secondFact(runId, onceKey)
      stated.add(onceKey)
    }
    return undefined
  }

  /** An append without events: for the entries that it takes, and for the head that it expects. */
  async #settle({ runId, expected, durability, takes, isSealed }: AppendRequest): Promise<Head> {
    const { expectedSeq: seq, epoch } = expected
    const isHeld =
      [seq, epoch].every(Number.isSafeInteger) &&
      (
        await this.#connections.rows({
          ...this.#texts.settle(durability),
          values: [runId, seq, epoch, takes.filter(isStorableName), isSealed],
        })
      ).length > 0
    if (!isHeld) requireHead(runId, (await this.#records.head(runId)) ?? emptyHead, expected)
    return { seq, epoch }
  }

  /** Whether these very events were written before: then only their acknowledgement was lost. */
  async #isAppended({ runId, expected, events }: AppendRequest): Promise<boolean> {
    const toSeq = expected.expectedSeq + events.length
    for (let index = 0; ;) {
      const rows = await this.#records.events({ runId, fromSeq: expected.expectedSeq + index + 1, toSeq })
      for (const row of rows) {
        const event = events[index++]
        if (event === undefined || !isSameEvent(row, event)) return false
      }
      if (index === events.length) return true
      if (rows.length === 0) return false
    }
  }

  #remember(runId: string, head: KnownHead): void {
    this.#known.delete(runId)
    this.#known.set(runId, head)
    if (this.#known.size <= maxKnown) return
    const [oldest] = this.#known.keys()
    if (oldest !== undefined) this.#known.delete(oldest)
  }
}

/** When an append ends its run, in milliseconds since 1970 UTC. */
function endOf({ events }: AppendRequest): number | null {
  return events.find(({ event }) => event.type === 'run_finished')?.event.at ?? null
}

/** A list of JSON as `JSON.stringify` writes it: Postgres spells a text as we do. */
const cell = {
  run_id: 'to_json(run.run_id)::text',
  pos: 'run.pos',
  head_seq: 'run.head_seq',
  head_hash: `'"' || run.head_hash || '"'`,
  epoch: 'run.epoch',
  session_id: `coalesce(to_json(run.session_id)::text, 'null')`,
  session_place: `coalesce(run.session_place::text, 'null')`,
  ended_at: `coalesce(run.ended_at::text, 'null')`,
  history: `coalesce('"' || run.history || '"', 'null')`,
} as const

/** `sealRun` within the database, so that a row is read, changed and sealed in one statement. */
export function sealText(changed: Partial<Record<keyof typeof cell, string>> = {}): string {
  const fields = Object.values({ ...cell, ...changed })
  const json = `'run [' || ${fields.join(` || ',' || `)} || ']'`
  return `translate(encode(sha256(convert_to(${json}, 'UTF8')), 'base64'), '+/=', '-_')`
}

/** The columns of an event that an append gives, with their types. `pos` is given by the database. */
const givenColumns = eventColumns
  .slice(1)
  .filter((column) => column !== 'commitment')
  .map((column) => {
    const isNumber = ['seq', 'turn', 'attempt', 'at', 'epoch', 'v'].includes(column)
    return { column, type: isNumber ? 'int8' : 'text' } as const
  })

/** Statements with their parameters, numbered in the order in which they are given. */
class Parameters {
  readonly values: unknown[] = []

  texts(values: readonly (string | null)[]): string {
    return `$${this.values.push(textArray(values))}::text[]`
  }

  numbers(values: readonly (number | null)[]): string {
    return `$${this.values.push(int8Array(values))}::int8[]`
  }
}

/** The statements of an append, for a schema whose name is quoted already. Each is a transaction of its own. */
export class AppendTexts {
  readonly acquire: Omit<Statement, 'values'>
  readonly #schema: string
  readonly #appends = new Map<string, string>()

  constructor(quotedSchema: string) {
    this.#schema = quotedSchema
    const seal = sealText({ epoch: '(run.epoch + 1)' })
    this.acquire = {
      name: 'tallystick acquire',
      text: inSchema(
        `update @.run set epoch = epoch + 1, seal = ${seal},
            lease_holder = $2::text, lease_until = ${nowText} + $3::int8
          where run_id = $1 and ($2::text is null or lease_holder is null or lease_until <= ${nowText}
            or lease_holder in ($2::text, $4::text))
          returning head_seq, head_hash, epoch, ${durabilityText.barrier}`,
        quotedSchema,
      ),
    }
  }

  /** Takes inbox entries for commands that were refused, where the head is as expected. */
  settle(durability: 'lazy' | 'barrier'): Omit<Statement, 'values'> {
    const logged = durability === 'barrier' ? `, ${logEntry}` : ''
    return {
      name: `tallystick settle ${durability}`,
      text: inSchema(
        `with held as (
          select run_id from @.run where run_id = $1 and head_seq = $2 and epoch = $3 for no key update
        ), taken as (
          update @.inbox set taken_seq = $2, command = case when $5::bool then '' else inbox.command end from held
          where inbox.run_id = held.run_id and inbox.key = any ($4::text[]) and inbox.taken_seq is null
        )
        select ${durabilityText[durability]}${logged} from held`,
        this.#schema,
      ),
    }
  }

  /** One statement for a group of appends to different runs. It answers the runs whose heads were the expected ones. */
  append(group: readonly AppendItem[]): Statement {
    const given = new Parameters()
    const shape = {
      begins: group.some(({ request }) => request.expected.expectedSeq === 0),
      takes: group.some(({ request }) => request.takes.length > 0),
      carries: group.some(({ history }) => history !== undefined),
    }
    const durability = group.some(({ request }) => request.durability === 'barrier') ? 'barrier' : 'lazy'
    const words = Object.entries(shape).flatMap(([word, isIt]) => (isIt ? [word] : []))
    const name = ['tallystick append', durability, ...words].join(' ')
    const parts = [
      headPart(group, given),
      ...(shape.begins ? [madePart] : []),
      movedPart,
      `swapped as materialized (select * from moved${shape.begins ? ' union all select * from made' : ''})`,
      ...(shape.carries ? [historyPart(group, given)] : []),
      ...(shape.takes ? [takenPart(group, given)] : []),
      writtenPart(group, given),
    ]
    const text =
      this.#appends.get(name) ??
      inSchema(
        `with ${parts.join(', ')} select run_id, ${durabilityText[durability]} from swapped`,
        this.#schema,
      )
    this.#appends.set(name, text)
    return { name, text, values: given.values }
  }
}

/**
 * The commit of a transaction that has written nothing syncs nothing, so a barrier writes into the log what only a
 * logical decoder would read.
 */
export const logEntry = `pg_logical_emit_message(true, 'tallystick', '')`

/** Where each run is to stand. */
function headPart(group: readonly AppendItem[], given: Parameters): string {
  const each = <Value>(valueOf: (item: AppendItem) => Value): readonly Value[] => group.map(valueOf)
  const placeOf = ({ request: { expected, events } }: AppendItem) =>
    expected.expectedSeq === 0 ? sessionPlaceOf(events.map(({ event }) => event)) : undefined
  const columns = [
    given.texts(each(({ runId }) => runId)),
    given.numbers(each(({ request }) => request.expected.expectedSeq)),
    given.numbers(each(({ request }) => request.expected.epoch)),
    given.texts(each(({ previousHash }) => previousHash)),
    given.numbers(each(({ rows }) => rows.at(-1)?.seq ?? 0)),
    given.texts(each(({ rows, previousHash }) => rows.at(-1)?.hash ?? previousHash)),
    given.numbers(each(({ request }) => endOf(request))),
    given.texts(each(({ history }) => history?.name ?? null)),
    given.texts(each((item) => placeOf(item)?.sessionId ?? null)),
    given.numbers(each((item) => placeOf(item)?.sessionPlace ?? null)),
    // Null where the lease stays as it is; where it ends, an empty name.
    given.texts(each(({ request }) => (endOf(request) === null ? (request.lease?.holder ?? null) : ''))),
    given.numbers(each(({ request }) => (request.lease ? Math.ceil(request.lease.forMs) : null))),
  ]
  return `head as materialized (
    select * from unnest(${columns.join(', ')}) with ordinality as given (run_id, expected_seq, epoch, previous_hash, head_seq,
      head_hash, ended_at, history, session_id, session_place, lease_holder, lease_for_ms, place)
  )`
}

const madePart = `made as (
    insert into @.run (pos, run_id, head_seq, head_hash, epoch, session_id, session_place, ended_at, history, seal, lease_holder, lease_until)
    select pos, run_id, head_seq, head_hash, epoch, session_id, session_place, ended_at, history, ${sealText()},
      nullif(lease_holder, ''), case when lease_holder <> '' then ${nowText} + lease_for_ms end
    from (select nextval('@.event_pos') as pos, head.* from head where expected_seq = 0 order by place) as run
    on conflict (run_id) do nothing returning run_id, pos
  )`

const endedAt = 'coalesce(run.ended_at, head.ended_at)'
const history = 'coalesce(run.history, head.history)'
const movedPart = `moved as (
    update @.run set head_seq = head.head_seq, head_hash = head.head_hash, ended_at = ${endedAt}, history = ${history},
      seal = ${sealText({
        head_seq: 'head.head_seq',
        head_hash: `'"' || head.head_hash || '"'`,
        ended_at: `coalesce(${endedAt}::text, 'null')`,
        history: `coalesce('"' || ${history} || '"', 'null')`,
      })},
      lease_holder = case when head.lease_holder is null then run.lease_holder else nullif(head.lease_holder, '') end,
      lease_until = case when head.lease_holder is null then run.lease_until
        when head.lease_holder <> '' then ${nowText} + head.lease_for_ms end
    from head
    where head.expected_seq > 0 and run.run_id = head.run_id and run.head_seq = head.expected_seq and run.epoch = head.epoch
      and run.head_hash = head.previous_hash and (run.ended_at is null or head.ended_at is null)
    returning run.run_id, run.pos
  )`

/** What runs begin with. Of an append that was refused nothing is kept. */
function historyPart(group: readonly AppendItem[], given: Parameters): string {
  const rows = group.flatMap(({ runId, history: carried }) =>
    (carried?.rows ?? []).map((row) => ({ ...row, runId })),
  )
  const columns = [
    given.texts(rows.map(({ runId }) => runId)),
    given.texts(rows.map(({ digest }) => digest)),
    given.texts(rows.map(({ before }) => before)),
    given.texts(rows.map(({ message }) => message)),
  ]
  return `messages as (
    insert into @.history (digest, before, message)
    select distinct on (digest) digest, before, message from swapped join unnest(${columns.join(', ')})
      as given (run_id, digest, before, message) using (run_id)
    on conflict (digest) do nothing
  )`
}

function takenPart(group: readonly AppendItem[], given: Parameters): string {
  const taken = group.flatMap(({ request, rows }) =>
    request.takes.filter(isStorableName).map((key) => ({
      ...{ runId: request.runId, key, seq: rows.at(-1)?.seq ?? 0, isSealed: request.isSealed ? 1 : 0 },
    })),
  )
  const columns = [
    given.texts(taken.map(({ runId }) => runId)),
    given.texts(taken.map(({ key }) => key)),
    given.numbers(taken.map(({ seq }) => seq)),
    given.numbers(taken.map(({ isSealed }) => isSealed)),
  ]
  return `taken as (
    update @.inbox set taken_seq = given.seq, command = case given.is_sealed when 1 then '' else inbox.command end
    from swapped join unnest(${columns.join(', ')}) as given (run_id, key, seq, is_sealed) using (run_id)
    where inbox.run_id = given.run_id and inbox.key = given.key and inbox.taken_seq is null
  )`
}

/** The first event of a run has the place of its run. */
function writtenPart(group: readonly AppendItem[], given: Parameters): string {
  const rows = group.flatMap((item) => item.rows)
  const columns = givenColumns.map(({ column, type }) =>
    type === 'int8'
      ? given.numbers(rows.map((row) => row[column] as number | null))
      : given.texts(rows.map((row) => row[column] as string | null)),
  )
  const names = givenColumns.map(({ column }) => column).join(', ')
  return `written as (
    insert into @.event (pos, ${names})
    select case when seq = 1 then first_pos else nextval('@.event_pos') end, ${names} from (
      select given.*, swapped.pos as first_pos from unnest(${columns.join(', ')}) with ordinality as given (${names}, n)
      join swapped using (run_id) order by n
    ) as sorted
  )`
}
