import { mutationsOf, type Mutation } from './mutation.ts'

const append = {
  'the epoch of an append is not checked': [
    'requireHead(runId, head, expected)',
    'requireHead(runId, { ...head, epoch: expected.epoch }, expected)',
  ],
  'the seq of an append is not checked': [
    'requireHead(runId, head, expected)',
    'requireHead(runId, { ...head, seq: expected.expectedSeq }, expected)',
  ],
  'a place of a session is not looked up before it is taken': [
    'if (place && isTaken(store.reads, place)) throw placeTaken(runId, place)',
    '',
  ],
  'no lost acknowledgement is recognised': ['if (isLostAcknowledgement) return after', ''],
  'a relieved writer whose acknowledgement was lost learns the epoch of its successor': [
    'if (isLostAcknowledgement) return after',
    'if (isLostAcknowledgement) return head',
  ],
  'any events that stand are taken for those of a lost acknowledgement': [
    'if (!event || !body || !isStoredAs(storedEvent(row), event, body.bytes)) return false',
    'if (!event || !body) return false',
  ],
  'a barrier that has nothing to write writes nothing': [
    `if (durability === 'barrier') store.writes.raiseBarrier.run({})`,
    '',
  ],
  'what was taken stays in the inbox': [
    'for (const key of takes) take(store, { runId, key, takenSeq: after.seq }, sealer !== undefined)',
    'void take',
  ],
  'a second fact is an error of the database': [
    'throw second === undefined ? error : secondFact(second.runId, second.onceKey)',
    'void second\n    throw error',
  ],
  'taking over does not raise the epoch': ['epoch: run.epoch + 1', 'epoch: run.epoch'],
} as const

const committer = {
  'a barrier syncs nothing': [`durability === 'barrier' ? 'full' : 'normal'`, `'normal'`],
  'a transaction takes its lock late': [`'begin immediate'`, `'begin'`],
  'what failed is committed': [
    'if (this.#database.inTransaction) this.#rollback.run()',
    'if (this.#database.inTransaction) this.#commit.run()',
  ],
  'lazy commits are forgotten when it comes to closing': [
    `if (hasWritten) this.#hasUnsynced = durability === 'lazy'`,
    'void hasWritten',
  ],
} as const

const schema = {
  'facts that stand once have no unique index': [
    `.createIndex('event_once')\n    .unique()`,
    `.createIndex('event_once')`,
  ],
  'places of sessions have no unique index': [
    `.createIndex('run_session')\n    .unique()`,
    `.createIndex('run_session')`,
  ],
  'events have no unique seq': [`.addUniqueConstraint('event_seq', ['run_id', 'seq'])`, ''],
  'events may leave gaps': [
    `new.seq <> 1 + coalesce((select max(seq) from event where run_id = new.run_id), 0) `,
    `false `,
  ],
  'events may be changed': [`refusal('event_stays', 'update on event', '', 'events are never changed'),`, ''],
  'an epoch may fall': [' or new.epoch < old.epoch ', ' '],
} as const

const store = {
  'an inbox key may be put twice': [
    'if (this.writes.inboxEntry.get({ runId, key }) !== undefined) return false',
    '',
  ],
  'lazy appends are not made durable by closing': [
    `if (this.transactions.hasUnsynced) this.transactions.transact('barrier', () => this.writes.raiseBarrier.run({}))`,
    '',
  ],
} as const

const checks = {
  'bytes that have changed are read': ['if (fault !== undefined) {', 'if (false) {'],
} as const

const search = {
  'a search has no horizon: what is appended meanwhile keeps it going': [
    `[{ by: 'place', ...places }]`,
    `[{ by: 'place', ...places, toPos: places.toPos + 10_000 }]`,
  ],
  'a search by time begins too early': ['Math.max(Math.ceil(fromAt)', 'Math.max(Math.floor(fromAt)'],
  'a search ends where nothing was found for a while': [
    'return isMore ? { rows, next: scanned } : { rows }',
    'return { rows }',
  ],
} as const

const found = {
  'runs of a search are laid after each other': [
    'source.head.pos < first.head.pos) first = source',
    'false) first = source',
  ],
  'an event that was found is chained to nothing': [
    'const event = eventAfter(linkBefore(row), storedEvent(row))',
    'const event = JSON.parse(Buffer.from(row.body ?? []).toString()) as RuntimeEvent\n  Object.assign(event, storedEvent(row))',
  ],
  'an index that is out of order is believed': ['requireOrder(batch, source, cursor)', 'void requireOrder'],
} as const

const tail = {
  'a tail continues after whatever stands at the place of its cursor': [
    'eventAtCursor.runId === named?.runId && digestOf(eventAtCursor.hash) === named.digest',
    'eventAtCursor.runId === named?.runId',
  ],
  'a tail continues with the event of its cursor': [
    'let place: TailPlace = named ?? start',
    'let place: TailPlace = named ? { ...named, pos: named.pos - 1 } : start',
  ],
} as const

const fileTail = {
  'a tail follows what is appended for ever': [
    'const toPos = search.places(everyEvent)?.toPos ?? 0',
    'const toPos = (search.places(everyEvent)?.toPos ?? 0) + 10_000',
  ],
} as const

/** Faults of the SQLite store, and of what it shares with the other. */
export const sqliteMutations: readonly Mutation[] = [
  ...mutationsOf('sqlite/write/append.ts', append),
  ...mutationsOf('sqlite/write/transactions.ts', committer),
  ...mutationsOf('sqlite/migrations/0001-ledger.ts', schema),
  ...mutationsOf('sqlite/sqlite-store.ts', store),
  ...mutationsOf('checked-event.ts', checks),
  ...mutationsOf('event-search.ts', search),
  ...mutationsOf('find-events.ts', found),
  ...mutationsOf('tail-events.ts', tail),
  ...mutationsOf('sqlite/tail.ts', fileTail),
]
