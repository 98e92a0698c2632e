import { LedgerDamagedError, type RunId, RunNotFoundError } from '@tallystick/core'
import {
  createDrivenByOtherError,
  emptyHead,
  isStorableName,
  createPlaceTakenError,
  requireHead,
  createSecondFactError,
  readSessionPlace,
  createUnreadInboxError,
} from '@tallystick/core/store-kit'
import type { ExpectedHead, Head, TakeOverClaim } from '@tallystick/core/vocabulary'
import { genesisHash } from '../format/chain.ts'
import { eventColumns, isRunId, isSameEvent, linkEvents, type NewRow } from '../format/event-row.ts'
import type { CarriedHistory, HistoryRow } from '../format/history.ts'
import { type AppendRequest, createDroppedRunConflict, listFactsOnce } from '../store/store.ts'
import {
  type Connections,
  isDropped,
  isMissingReference,
  isUnread,
  findConstraint,
  type Statement,
} from './connections.ts'
import type { RunRow } from '../store/database.ts'
import { readHead, readLease, readRows, readRun } from '../store/records.ts'
import type { OpenSchema } from './database.ts'
import { durabilityText, placeInSchema, nowText } from './schema.ts'

/** One append that waits for its turn. */
export interface Queued {
  readonly runId: string
  /** Another run whose row it writes, as others of its group may. */
  readonly wakes?: string | undefined
  /** Rows and bytes that it adds to a group. */
  readonly events: number
  readonly bytes: number
}

/** Bounds of a group; one append alone may be larger. */
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
 * busy, new appends queue up, and the next free lane takes all queued ones as one group. The row of a run is written
 * by one group at a time, so that groups of one process never wait for each other.
 */
export class GroupCommit<Item extends Queued, Result> {
  readonly #commit: (group: readonly Item[]) => Promise<readonly Result[]>
  readonly #lanes: number
  readonly #busyRuns = new Set<string>()
  #waiting: Waiting<Item, Result>[] = []
  #busyLanes = 0

  /**
   * `commit` returns a result for each append of a group, in order; if it rejects for several, it is called for each alone.
   */
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
      const runs = group.flatMap(({ item: { runId, wakes } }) =>
        wakes === undefined ? [runId] : [runId, wakes],
      )
      for (const runId of runs) this.#busyRuns.add(runId)
      void this.#carryOut(group).finally(() => {
        this.#busyLanes--
        for (const runId of runs) this.#busyRuns.delete(runId)
        this.#fill()
      })
    }
  }

  #nextGroup(): readonly Waiting<Item, Result>[] {
    const group: Waiting<Item, Result>[] = []
    const left: Waiting<Item, Result>[] = []
    const runs = new Set<string>()
    const woken = new Set<string>()
    const isTaken = (runId: string): boolean => runs.has(runId) || this.#busyRuns.has(runId)
    let [events, bytes] = [0, 0]
    for (const waiting of this.#waiting) {
      const { item } = waiting
      const fits =
        group.length === 0 ||
        (group.length < maxRuns && events + item.events <= maxEvents && bytes + item.bytes <= maxBytes)
      const { runId, wakes } = item
      // A statement writes a row once.
      const isFree = !isTaken(runId) && !woken.has(runId) && (wakes === undefined || !isTaken(wakes))
      if (!fits || !isFree) left.push(waiting)
      else {
        group.push(waiting)
        if (wakes !== undefined) woken.add(wakes)
        events += item.events
        bytes += item.bytes
      }
      // Later appends of the same run wait for earlier ones.
      runs.add(runId)
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
  readonly rows: readonly NewRow[]
  readonly history: { readonly name: string; readonly rows: readonly HistoryRow[] } | undefined
}

/** The members of the port that move heads. */
export class Appender {
  readonly #connections: Connections
  readonly #database: OpenSchema
  readonly #texts: AppendTexts
  readonly #known = new Map<string, KnownHead>()
  readonly #group: GroupCommit<AppendItem, boolean>
  /** The last append of each run that has not ended yet. */
  readonly #underWay = new Map<string, Promise<Head>>()
  /** Lazy appends that were acknowledged, and how many of them a barrier comes after. */
  #lazy = 0
  #hardened = 0

  constructor(connections: Connections, database: OpenSchema, quotedSchema: string) {
    this.#connections = connections
    this.#database = database
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
      if ((await readRun(this.#database, runId)) === undefined) throw new RunNotFoundError(runId)
      const lease = await readLease(this.#database, runId)
      // It may have ended between the two looks.
      if (lease) throw createDrivenByOtherError(runId, lease)
    }
  }

  /** Makes every lazy append durable. */
  async harden(): Promise<void> {
    if (this.#hardened === this.#lazy) return
    const before = this.#lazy
    await this.sync()
    this.#hardened = Math.max(this.#hardened, before)
  }

  /** Makes every commit before it durable. */
  async sync(): Promise<void> {
    await this.#database.ask(`select ${logEntry}, ${durabilityText.barrier}`)
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
        if (durability === 'barrier') await this.sync()
        return after
      }
      const run = await readRun(this.#database, runId)
      requireHead(runId, run ? { seq: run.head_seq, epoch: run.epoch } : emptyHead, expected)
      if (run?.ended_at != null && findEnd(request) !== null)
        throw createSecondFactError(runId, 'run_finished')
    }
    throw new LedgerDamagedError(
      `Run ${runId} ends where an append expects it, and yet its row refuses the append. It is damaged, or a client ` +
        'of the database changes it back and forth. Run verify on the ledger, and restore a copy.',
    )
  }

  /** Answers the hash of the new head; `undefined` if the head is not the expected one. */
  async #swap(request: AppendRequest): Promise<string | undefined> {
    const { runId, expected, events } = request
    const previousHash = await this.#hashAt(runId, expected)
    if (previousHash === undefined) return undefined
    if (events.filter(({ event }) => event.type === 'run_finished').length > 1)
      throw createSecondFactError(runId, 'run_finished')
    const rows = linkEvents(previousHash, events)
    const carried = events.find(({ history }) => history)?.history
    const history = carried && { name: carried.name, rows: await this.#missingRows(carried) }
    const bytes = [...rows.map(({ body }) => body), ...(history?.rows.map(({ message }) => message) ?? [])]
    const item: AppendItem = {
      ...{ runId, request, previousHash, rows, history, events: rows.length },
      wakes: request.wakes !== undefined && isRunId(request.wakes) ? request.wakes : undefined,
      bytes: bytes.reduce((sum, text) => sum + text.length, 0),
    }
    return (await this.#submit(item)) ? rows.at(-1)?.hash : undefined
  }

  async #missingRows(history: CarriedHistory): Promise<readonly HistoryRow[]> {
    const rows = await this.#database.ask<{ readonly digest: string }>(
      'select digest from @.history where digest = any ($1::text[])',
      [[...history.names()]],
    )
    const known = new Set(rows.map(({ digest }) => digest))
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
    const run = await readRun(this.#database, runId)
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
    if (isUnread(error)) return createUnreadInboxError(runId)
    if (isDropped(error)) return createDroppedRunConflict(runId)
    const constraint = findConstraint(error)
    const place = readSessionPlace(events.map(({ event }) => event))
    if (constraint === 'run_session' && place) return createPlaceTakenError(runId, place)
    return constraint === 'event_call' ? ((await this.#secondFactIn(runId, events)) ?? error) : error
  }

  /** The refusal of the first fact that is recorded already, or is stated twice. */
  async #secondFactIn(runId: RunId, events: AppendRequest['events']): Promise<Error | undefined> {
    for (const { key, envelope, isRepeated } of listFactsOnce(events)) {
      const { tool_call_id, run_id, type, attempt } = envelope
      const recorded = await this.#database.ask(
        'select 1 from @.event where tool_call_id = $1 and run_id = $2 and type = $3 and attempt = $4',
        [tool_call_id, run_id, type, attempt],
      )
      if (isRepeated || recorded.length > 0) return createSecondFactError(runId, key)
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
    if (!isHeld) requireHead(runId, (await readHead(this.#database, runId)) ?? emptyHead, expected)
    return { seq, epoch }
  }

  /** If these very events were written before, only their acknowledgement was lost. */
  async #isAppended({ runId, expected, events }: AppendRequest): Promise<boolean> {
    const toSeq = expected.expectedSeq + events.length
    for (let index = 0; ;) {
      const rows = await readRows(this.#database, { runId, fromSeq: expected.expectedSeq + index + 1, toSeq })
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
function findEnd({ events }: AppendRequest): number | null {
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
function sealText(changed: Partial<Record<keyof typeof cell, string>> = {}): string {
  const fields = Object.values({ ...cell, ...changed })
  const json = `'run [' || ${fields.join(` || ',' || `)} || ']'`
  return `translate(encode(sha256(convert_to(${json}, 'UTF8')), 'base64'), '+/=', '-_')`
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
      text: placeInSchema(
        `update @.run set epoch = epoch + 1, seal = ${seal},
            lease_holder = $2::text, lease_until = ${nowText} + $3::int8, due_at = case when ended_at is null then 0 end
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
      text: placeInSchema(
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
    const values: string[] = []
    const shape = {
      begins: group.some(({ request }) => request.expected.expectedSeq === 0),
      carries: group.some(({ history }) => history !== undefined),
      takes: group.some(({ request }) => request.takes.length > 0),
      wakes: group.some(({ wakes }) => wakes !== undefined),
    }
    const durability = group.some(({ request }) => request.durability === 'barrier') ? 'barrier' : 'lazy'
    const words = Object.entries(shape).flatMap(([word, isIt]) => (isIt ? [word] : []))
    const name = ['tallystick append', durability, ...words].join(' ')
    const given = (rows: readonly object[]): string => `$${values.push(JSON.stringify(rows))}`
    const parts = [
      selectHead(given(group.map(toHeadRow))),
      ...(shape.begins ? [madePart] : []),
      movedPart,
      `swapped as materialized (select * from moved${shape.begins ? ' union all select * from made' : ''})`,
      insertWritten(given(group.flatMap(({ rows }) => rows).map((row, n) => ({ ...row, n })))),
      ...(shape.carries ? [insertHistory(given(group.flatMap(toMessageRows)))] : []),
      ...(shape.wakes ? [wokenPart] : []),
      ...(shape.takes ? [updateTaken(given(group.flatMap(toTakenRows)))] : []),
    ]
    const text =
      this.#appends.get(name) ??
      placeInSchema(
        `with ${parts.join(', ')} select run_id, ${durabilityText[durability]} from swapped`,
        this.#schema,
      )
    this.#appends.set(name, text)
    return { name, text, values }
  }
}

/**
 * The commit of a transaction that has written nothing syncs nothing, so a barrier writes into the log what only a
 * logical decoder would read.
 */
const logEntry = `pg_logical_emit_message(true, 'tallystick', '')`

function toHeadRow(
  { runId, request, rows, history, previousHash, wakes }: AppendItem,
  place: number,
): object {
  const { expected, events, lease } = request
  const session = expected.expectedSeq === 0 ? readSessionPlace(events.map(({ event }) => event)) : undefined
  const endedAt = findEnd(request)
  return {
    ...{ run_id: runId, expected_seq: expected.expectedSeq, epoch: expected.epoch, place },
    ...{ previous_hash: previousHash, history: history?.name },
    ...{ head_seq: rows.at(-1)?.seq ?? 0, head_hash: rows.at(-1)?.hash ?? previousHash, ended_at: endedAt },
    wakes,
    ...{ session_id: session?.sessionId, session_place: session?.sessionPlace },
    // Absent if the lease stays as it is; an empty name if it ends.
    ...{ lease_holder: endedAt === null ? lease?.holder : '', lease_for_ms: lease && Math.ceil(lease.forMs) },
  }
}

function selectHead(given: string): string {
  return `head as materialized (
    select * from json_to_recordset(${given}::json) as given (run_id text, expected_seq int8, epoch int8, place int8,
      previous_hash text, history text, head_seq int8, head_hash text, ended_at int8, session_id text, session_place int8,
      lease_holder text, lease_for_ms int8, wakes text)
  )`
}

const madePart = `made as (
    insert into @.run (pos, run_id, head_seq, head_hash, epoch, session_id, session_place, ended_at, history, seal, lease_holder, lease_until,
      due_at)
    select pos, run_id, head_seq, head_hash, epoch, session_id, session_place, ended_at, history, ${sealText()},
      nullif(lease_holder, ''), case when lease_holder <> '' then ${nowText} + lease_for_ms end,
      case when ended_at is null then 0 end
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
        when head.lease_holder <> '' then ${nowText} + head.lease_for_ms end,
      due_at = case when head.ended_at is null then run.due_at end
    from head
    where head.expected_seq > 0 and run.run_id = head.run_id and run.head_seq = head.expected_seq and run.epoch = head.epoch
      and run.head_hash = head.previous_hash and (run.ended_at is null or head.ended_at is null)
    returning run.run_id, run.pos
  )`

const wokenPart = `woken as (
    update @.run set due_at = 0 from (select distinct wakes from head join swapped using (run_id)) as ended
    where run.run_id = ended.wakes and run.ended_at is null
  )`

function toMessageRows({ runId, history }: AppendItem): readonly object[] {
  return (history?.rows ?? []).map((row) => ({ ...row, run_id: runId }))
}

/** Messages that runs begin with. Those of a refused append are not kept. */
function insertHistory(given: string): string {
  return `messages as (
    insert into @.history (digest, before, message)
    select distinct on (digest) digest, before, message from swapped
      join json_to_recordset(${given}::json) as given (run_id text, digest text, before text, message text) using (run_id)
    on conflict (digest) do nothing
  )`
}

function toTakenRows({ runId, request, rows }: AppendItem): readonly object[] {
  const seq = rows.at(-1)?.seq ?? 0
  return request.takes
    .filter(isStorableName)
    .map((key) => ({ run_id: runId, key, seq, is_sealed: request.isSealed }))
}

function updateTaken(given: string): string {
  return `taken as (
    update @.inbox set taken_seq = given.seq, command = case when given.is_sealed then '' else inbox.command end
    from swapped join json_to_recordset(${given}::json) as given (run_id text, key text, seq int8, is_sealed bool) using (run_id)
    where inbox.run_id = given.run_id and inbox.key = given.key and inbox.taken_seq is null
  )`
}

/** The columns of an event that an append gives. `pos` is given by the database. */
const givenColumns = eventColumns.filter((column) => column !== 'pos' && column !== 'commitment')
const numbers: readonly string[] = ['seq', 'turn', 'attempt', 'at', 'epoch', 'v']

/** The first event of a run has the place of its run. */
function insertWritten(given: string): string {
  const names = givenColumns.join(', ')
  const typed = givenColumns.map((column) => `${column} ${numbers.includes(column) ? 'int8' : 'text'}`)
  return `written as (
    insert into @.event (pos, ${names})
    select case when seq = 1 then first_pos else nextval('@.event_pos') end, ${names} from (
      select given.*, swapped.pos as first_pos
      from json_to_recordset(${given}::json) as given (${typed.join(', ')}, n int8)
      join swapped using (run_id) order by n
    ) as sorted
  )`
}
