import { maxEventsOfRow } from '../../record/envelope.ts'
import type { AppendShape } from './append-parameters.ts'
import { appendText } from './append-text.ts'
import type { Statement } from '../connection/connections.ts'
import { durabilityText, nowText, rowDigestColumns, rowDigestText } from './statement-parts.ts'

/** The statements of a ledger, by name. Each is a transaction of its own. */
export interface StatementTexts {
  /** Events after the heads of their runs, by the shape of the append. */
  append(shape: AppendShape): Omit<Statement, 'values'>
  /** Takes inbox entries for commands that were refused, where the head is as expected. */
  readonly settle: Readonly<Record<'barrier' | 'lazy', string>>
  readonly acquire: string
  readonly lease: string
  readonly renew: string
  readonly release: string
  readonly run: string
  /** Rows that hold events of a range. */
  readonly batch: string
  /** The first row of a run that still has its payload. */
  readonly firstRow: string
  readonly put: string
  readonly inbox: string
  readonly onceKeys: string
  readonly facts: string
  readonly marks: string
  /** Makes every commit before it durable. */
  readonly harden: string
  readonly notify: string
}

/** A batch holds at most this many events, and ends with the first that takes its bodies over this many bytes. */
export const eventsPerBatch = 512
export const bytesPerBatch: number = 1024 * 1024

/**
 * The commit of a transaction that has written nothing syncs nothing, so a barrier writes into the log what only a
 * logical decoder would read.
 */
const logEntry = `pg_logical_emit_message(true, 'tallystick', '')`

/** Writes the statements for a schema, whose name is quoted already. */
export function statementTexts(schema: string): StatementTexts {
  const settle = settleText(schema)
  return {
    append: appendTexts(schema),
    settle: {
      barrier: settle(`${durabilityText.barrier}, ${logEntry}`),
      lazy: settle(durabilityText.lazy),
    },
    acquire: `update ${schema}.run set epoch = epoch + 1,
      seal = ${rowDigestText({ ...rowDigestColumns, epoch: '(epoch + 1)' })},
      lease_holder = $2::text, lease_until = ${nowText} + $3::int8
      where run_id = $1 and ($2::text is null or lease_holder is null or lease_until <= ${nowText}
        or lease_holder in ($2::text, $4::text))
      returning head_seq, head_hash, epoch, ${durabilityText.barrier}`,
    lease: `select lease_holder as holder, lease_until - ${nowText} as "leftMs" from ${schema}.run
      where run_id = $1 and lease_until > ${nowText}`,
    renew: `update ${schema}.run set lease_until = ${nowText} + $2::int8
      where run_id = any ($3::text[]) and lease_holder = $1 returning run_id, ${durabilityText.lazy}`,
    release: `update ${schema}.run set lease_holder = null, lease_until = null
      where run_id = $1 and lease_holder = $2 returning ${durabilityText.lazy}`,
    run: `select head_seq, head_hash, epoch from ${schema}.run where run_id = $1`,
    batch: batchText(schema),
    firstRow: `select event.*, salt, body from ${schema}.event join ${schema}.payload using (pos)
      where run_id = $1 order by seq limit 1`,
    put: `with known as (select run_id from ${schema}.run where run_id = $1),
      put as (
        insert into ${schema}.inbox (run_id, key, kind, body, at)
        select run_id, $2::text, $3::text, $4::bytea, $5::int8 from known
        where not exists (select from ${schema}.inbox where run_id = $1 and key = $2::text) on conflict (run_id, key) do nothing returning pos
      )
      select (select count(*) from known) as runs, (select count(*) from put) as entries, ${durabilityText.barrier}`,
    inbox: `select key, body, at from ${schema}.inbox where run_id = $1 and taken_seq is null order by pos`,
    onceKeys: `select once_key from ${schema}.event where run_id = $1 and once_key = any ($2::text[]) limit 1`,
    facts: `select number from ${schema}.fact join ${schema}.run on run.pos = fact.run
      where run_id = $1 and number = any ($2::int8[])`,
    marks: `select run_id, head_seq || ' ' || epoch || ' ' || coalesce(
        (select max(pos) from ${schema}.inbox where inbox.run_id = run.run_id and taken_seq is null), 0) as mark
      from ${schema}.run where run_id = any ($1::text[])`,
    harden: `select ${logEntry}, ${durabilityText.barrier}`,
    notify: `select pg_notify($1::text, $2::text), ${durabilityText.lazy}`,
  }
}

/** The statement of each shape of append, written when it is first asked for. */
function appendTexts(schema: string): StatementTexts['append'] {
  const known = new Map<string, Omit<Statement, 'values'>>()
  return (shape) => {
    const name = appendName(shape)
    const statement = known.get(name) ?? { name, text: appendText(schema, shape) }
    known.set(name, statement)
    return statement
  }
}

function appendName(shape: AppendShape): string {
  const { durability, isAlone, begins, states, takes, isLarge, carries, leases } = shape
  const words = [
    ...[isAlone && 'one', begins && 'begin', states && 'state', takes && 'take'],
    ...[isLarge && 'large', carries && 'carry', leases && 'lease'],
  ]
  return ['tallystick append', durability, ...words.filter((word) => word !== false)].join(' ')
}

function settleText(schema: string): (durable: string) => string {
  return (durable) => `with held as (
    select run_id from ${schema}.run where run_id = $1 and head_seq = $2 and epoch = $3 for no key update
  ), taken as (
    update ${schema}.inbox set taken_seq = $2, body = case when $5::bool then ''::bytea else inbox.body end from held
    where inbox.run_id = held.run_id and inbox.key = any ($4::text[]) and inbox.taken_seq is null
  )
  select (select count(*) from held) as runs, ${durable}`
}

/** Counts bytes while it goes, so that a batch of large bodies ends early and is never read whole. */
function batchText(schema: string): string {
  return `select pos, run_id, first_seq, seq, epoch, type, v, turn, tool_call_id, at, once_key, body_commit, hash, salt, body
    from (
      select event.pos, run_id, first_seq, seq, epoch, type, v, turn, tool_call_id, at, once_key, body_commit, hash, salt, body,
        sum(octet_length(body)) over (order by seq rows between unbounded preceding and 1 preceding) as bytes_before
      from ${schema}.event left join ${schema}.payload on payload.pos = event.pos
      where run_id = $1 and seq >= $2 and seq < $3::int8 + ${maxEventsOfRow} and coalesce(first_seq, seq) <= $3
      order by seq limit ${eventsPerBatch}
    ) as page
    where coalesce(bytes_before, 0) < ${bytesPerBatch} order by seq`
}
