import { mutationsOf, type Mutation } from './mutation.ts'

const aloneText = {
  'the epoch of an append is not checked': ["and epoch = ${given('epoch')} and head_hash", 'and head_hash'],
  'the seq of an append is not checked': [
    "where run_id = ${given('runId')} and head_seq = ${given('expectedSeq')}",
    "where run_id = ${given('runId')}",
  ],
  'the hash of the head is not checked': [
    "and head_hash = ${given('previousHash')}",
    "and length(${given('previousHash')}) > 0",
  ],
  'the second of two first appends fails in words of the database': [
    "where ${given('expectedSeq')} = 0 and ${given('epoch')} = 1\n    ) as fresh\n    on conflict (run_id) do nothing",
    "where ${given('expectedSeq')} = 0 and ${given('epoch')} = 1\n    ) as fresh",
  ],
  'a refused append takes from the inbox': [
    "from swapped\n    where inbox.run_id = ${given('runId')}",
    "where inbox.run_id = ${given('runId')}",
  ],
} as const

const seqCheck =
  'and run.head_seq = head.expected_seq\n      and run.epoch = head.epoch and run.head_hash = head.previous_hash'

const groupText = {
  'the epoch of an append in a group is not checked': [
    'and run.epoch = head.epoch and run.head_hash = head.previous_hash',
    'and run.head_hash = head.previous_hash',
  ],
  'the seq of an append in a group is not checked': [
    seqCheck,
    'and run.epoch = head.epoch and run.head_hash = head.previous_hash',
  ],
  'the hash of the head is not checked in a group': [
    'and run.epoch = head.epoch and run.head_hash = head.previous_hash',
    'and run.epoch = head.epoch',
  ],
  'the second of two first appends in groups fails in words of the database': [
    'where expected_seq = 0 and epoch = 1) as fresh\n    on conflict (run_id) do nothing',
    'where expected_seq = 0 and epoch = 1) as fresh',
  ],
  'a refused append in a group takes from the inbox': [
    'where places[given.whose] is not null\n      and inbox.run_id',
    'where inbox.run_id',
  ],
  'a refused append leaves its large contents': ['where digest in (select digest from uses)', ''],
} as const

const parts = {
  'a barrier does not wait for the disk': [
    `case when current_setting('synchronous_commit') = 'off' then 'on' else current_setting('synchronous_commit') end`,
    `'off'`,
  ],
} as const

const statements = {
  'a barrier that has nothing to write writes nothing': [
    `pg_logical_emit_message(true, 'tallystick', '')`,
    `''`,
  ],
  'taking over does not raise the epoch': ['set epoch = epoch + 1,', 'set epoch = epoch + 0,'],
  'an append of no events does not check the head': [
    'where run_id = $1 and head_seq = $2 and epoch = $3 for no key update',
    'where run_id = $1 and ($2::int8 + $3::int8 > 0) for no key update',
  ],
} as const

const append = {
  'no lost acknowledgement is recognised': [
    'if (await this.#isAppendedAlready(batch)) {',
    "if (batch.runId === '') {",
  ],
  'any events that stand are taken for those of a lost acknowledgement': [
    'if (!event || !body || !isStoredAs(stored, event, body.bytes)) return false',
    'if (!event || !body) return false',
  ],
  'a second fact is an error of the database': [
    `if (constraint !== 'event_once') return droppedRunConflict`,
    `if (constraint !== '') return droppedRunConflict`,
  ],
  'a second run at a place is an error of the database': [
    `if (constraint === 'run_session' && place) return placeTaken(runId, place)`,
    'void place',
  ],
  'lazy appends are not made durable by closing': [
    'if (this.#hardened === this.#lazy) return',
    'if (this.#hardened <= this.#lazy) return',
  ],
} as const

const schema = {
  'facts that stand once have no unique index': [
    `.createIndex('event_once')\n      .unique()`,
    `.createIndex('event_once')`,
  ],
  'places of sessions have no unique index': [
    `.createIndex('run_session')\n      .unique()`,
    `.createIndex('run_session')`,
  ],
} as const

const search = {
  'a search has no horizon: what is appended meanwhile keeps it going': [
    'max(pos) as "toPos" from ${schema}.event`',
    'max(pos) + 10000 as "toPos" from ${schema}.event`',
  ],
  'a search by turn goes through its run': [
    "where: 'event.run_id = $7 and event.turn = $3'",
    "where: 'event.run_id = $7'",
  ],
} as const

const group = {
  'two appends of a run are under way at once': [
    'if (!fits || runs.has(item.runId) || this.#busyRuns.has(item.runId)) left.push(waiting)',
    'if (!fits) left.push(waiting)',
  ],
} as const

const tail = {
  'a tail has no horizon: it goes by what it sees, and misses what is committed late': [
    "export const horizon = 'pg_snapshot_xmin(pg_current_snapshot())'",
    "export const horizon = 'pg_snapshot_xmax(pg_current_snapshot())'",
  ],
  'a tail follows what is appended for ever': [
    'and event.xid < $3::xid8',
    'and event.xid < coalesce(nullif(${horizon}, $3::xid8), $3::xid8)',
  ],
  'events that a tail does not reach are known to nobody': [
    'const heldBack = `exists (select from ${schema}.event where xid >= ${horizon})`',
    'const heldBack = `false`',
  ],
} as const

const beginning = {
  'a tail yields what a crash of the server may take away': [
    'if (begun.is_more && !begun.is_durable) await',
    "if (begun.horizon === '') await",
  ],
  'numbers of another server are taken for those of this one': [
    'if (begun.is_foreign) throw this.#foreign()',
    'void this.#foreign',
  ],
} as const

const follows = {
  'an event may carry the transaction of another': ['if not batch.is_own or (', 'if ('],
  'an event may stand in front of the one before it in its run': [
    '(previous > own and previous < pg_snapshot_xmax(pg_current_snapshot()))',
    'false',
  ],
  'events may leave gaps': [
    'if head.head_seq is distinct from batch.last or',
    'if false and head.head_seq is distinct from batch.last or',
  ],
} as const

const ledger = {
  'nobody looks again for events that wait': ['if (begun.isHeldBack) feed.pollSoon()', ''],
} as const

/** Faults of the Postgres store. */
export const postgresMutations: readonly Mutation[] = [
  ...mutationsOf('postgres/rows/append-text.ts', { ...aloneText, ...groupText }),
  ...mutationsOf('postgres/rows/statement-parts.ts', parts),
  ...mutationsOf('postgres/rows/statements.ts', statements),
  ...mutationsOf('postgres/write/append.ts', append),
  ...mutationsOf('postgres/migrations/0001-ledger.ts', schema),
  ...mutationsOf('postgres/migrations/0002-tail.ts', follows),
  ...mutationsOf('postgres/rows/tail-texts.ts', tail),
  ...mutationsOf('postgres/rows/tail.ts', beginning),
  ...mutationsOf('postgres/postgres-ledger.ts', ledger),
  ...mutationsOf('postgres/rows/search-texts.ts', search),
  ...mutationsOf('postgres/write/group-commit.ts', group),
]
