import {
  ConfigurationError,
  type Ledger,
  type RunId,
  RunNotFoundError,
  type RuntimeEvent,
} from '@tallystick/core'
import { findEventShapeFault, option, requireLedger, requireOptions } from '@tallystick/core/internal'
import { requireTextId } from '@tallystick/core/store-kit'
import { eventTraits, eventTypes, type EventType, type Removed } from '@tallystick/core/vocabulary'
import { encodeRemains } from '../format/body.ts'
import { createDamagedEventError, decodeRow, type EventRow } from '../format/event-row.ts'
import type { RemovalCause, RemovalRequest } from '../format/chain.ts'
import { eventRefs, type RunRow, type StoreDatabase } from './database.ts'
import { readRows } from './records.ts'
import { type Internals, requireRemovable } from './store.ts'

/** Who removes content, and why. Both stay on record for ever, so they must not repeat the content. */
export interface RedactOptions {
  readonly by: string
  readonly reason: string
  /** Milliseconds since 1970 UTC. Default: now. */
  readonly at?: number | undefined
}

const { anyFunction, anyText, fields, maybe, numberFrom, textOr, trueOrFalse, valueThat } = option
const redactOptions = fields<RedactOptions>({ by: anyText, reason: anyText, at: maybe(numberFrom(0)) })
const redactedSeqs = textOr(['all'], valueThat("a list of event numbers, or 'all'", Array.isArray))

const eventsAtOnce = 512

/**
 * Removes the content of events of a run, for good. Of each event its facts stay, and who removed the content and why.
 * The chain of hashes still verifies. A run that is resumed continues without the content. Returns how many events lost
 * their content; those that had lost it before are not counted. Name events that repeat the content as well: a text is
 * also in the finished message, a tool's input in the request and in the message, and messages are carried into later runs
 * of the session. `find` helps to find them. Rejects with `RunNotFoundError` for an unknown run, and with
 * `ConfigurationError` for an event that the run does not have, wrong options, or a ledger that cannot remove content. An event
 * that is damaged, or of a release that is not known here, is a `LedgerDamagedError` or an `UnknownEventError`: what its content
 * is, nobody can say.
 */
export async function redact(
  ledger: Ledger,
  runId: RunId,
  seqs: readonly number[] | 'all',
  options: RedactOptions,
): Promise<number> {
  requireLedger('redact', ledger)
  requireTextId('redact', runId)
  requireOptions('redact', redactedSeqs, seqs, 'the third argument')
  requireOptions('redact', redactOptions, options)
  const { by, reason, at = Date.now() } = options
  const beneath = requireRemovable(ledger)
  if (by === '' || reason === '') {
    throw new ConfigurationError(
      'redact needs a name in by, and a reason: they are recorded in place of the content. Nothing was removed.',
    )
  }
  const head = await ledger.head(runId)
  if (head === undefined) throw new RunNotFoundError(runId)
  const chosen = seqs === 'all' ? undefined : new Set(seqs)
  const unknown = [...(chosen ?? [])].find((seq) => !Number.isSafeInteger(seq) || seq < 1 || seq > head.seq)
  if (unknown !== undefined) {
    throw new ConfigurationError(
      `Run ${runId} has events 1 to ${head.seq}, so event ${unknown} cannot be redacted. Nothing was removed.`,
    )
  }
  const cause = { kind: 'redacted', at, by, reason } as const
  let removed = 0
  for (let seq = 0; seq < head.seq;) {
    const toSeq = Math.min(seq + eventsAtOnce, head.seq)
    const rows = await readRows(beneath.store.database, { runId, fromSeq: seq + 1, toSeq })
    const due = rows.filter((row) => row.commitment === null && (chosen?.has(row.seq) ?? true))
    if (due.length > 0) removed += await beneath.store.remove(await toRequests(beneath, due, cause))
    seq = rows.at(-1)?.seq ?? toSeq
  }
  return removed
}

/** Throws `LedgerDamagedError` if an event cannot be read. */
async function toRequests(
  { rows }: Internals,
  due: readonly EventRow[],
  cause: RemovalCause & { readonly kind: 'redacted' | 'expired' },
): Promise<readonly RemovalRequest[]> {
  const { kind, at, by, reason } = cause
  const removed: Removed = { kind, at, by, ...(reason !== undefined && { reason }) }
  return (await rows.readable(due)).map((row): RemovalRequest => {
    const event = decodeRow(row)
    const fault = findEventShapeFault(event)
    if (fault) throw createDamagedEventError(event.runId, row.seq, `${fault.path} ${fault.what}`)
    return { ...cause, runId: event.runId, seq: row.seq, body: encodeRemains(event, removed) }
  })
}

/** How long content is kept, by class, in milliseconds from its recording. A class that is not named stays for ever. */
export interface RetentionAges {
  /**
   * Pieces of texts and of tool inputs as they were streamed, and progress of tools: later events hold their content
   * whole.
   */
  readonly deltasMs?: number | undefined
  /** Messages, inputs and results. The facts of each event stay: who, which, when, how much, how it ended. */
  readonly contentMs?: number | undefined
  /** Whole runs, from their end. Of each run only its id, its time and its last hash stay. */
  readonly factsMs?: number | undefined
}

/** How rules of retention are applied. */
export interface RetentionOptions {
  /** Milliseconds since 1970 UTC. Default: now. */
  readonly now?: number | undefined
  /** Recorded with each removal. Default: `retention`. */
  readonly by?: string | undefined
  readonly reason?: string | undefined
  /** Counts, and removes nothing. */
  readonly dryRun?: boolean | undefined
  /** Called after each step with what has been removed so far. */
  readonly onProgress?: ((soFar: RetentionReport) => void) | undefined
}

/** How much was removed. */
export interface RetentionReport {
  /** Events that lost their content, by class. */
  readonly deltas: number
  readonly content: number
  /** Runs that were dropped, and how many events they had. */
  readonly runs: number
  readonly events: number
}

/** Events of numbers, names and reasons of the runtime's own: nothing that people or models said, asked or answered. */
const factsOnly: ReadonlySet<EventType> = new Set<EventType>([
  ...(['usage_updated', 'tool_deferred', 'tool_results_injected', 'guardrails_checked'] as const),
])

/** The class of an event's content; pieces are those that a later event holds again. */
export function classifyContent(type: EventType): 'facts' | 'deltas' | 'content' {
  if (factsOnly.has(type)) return 'facts'
  return eventTraits[type].retention === 'deltas' ? 'deltas' : 'content'
}

const runsAtOnce = 1024

type EndedRun = Pick<RunRow, 'pos' | 'head_seq' | 'head_hash' | 'ended_at'> & { readonly run_id: RunId }

/**
 * Removes content that is older than the rules allow, from runs that have ended; a run that is under way, or waits
 * for a person or a command, keeps the content that it needs to continue. It works in small transactions: it can be
 * stopped at any moment, and run again.
 *
 * Rejects with `ConfigurationError` for invalid ages, or a ledger that cannot remove content.
 */
export async function applyRetention(
  ledger: Ledger,
  ages: RetentionAges,
  options: RetentionOptions = {},
): Promise<RetentionReport> {
  requireLedger('applyRetention', ledger)
  requireOptions('applyRetention', retentionAges, ages)
  requireOptions('applyRetention', retentionOptions, options)
  if ((ages.deltasMs ?? ages.contentMs ?? ages.factsMs) === undefined) {
    throw new ConfigurationError(
      'Retention needs an age in milliseconds, from 0, for at least one class: deltasMs, contentMs, factsMs. Nothing was removed.',
    )
  }
  const beneath = requireRemovable(ledger)
  const { store } = beneath
  const { now = Date.now(), by = 'retention', reason, dryRun = false, onProgress } = options
  const report = { deltas: 0, content: 0, runs: 0, events: 0 }
  const cause = { at: now, by, ...(reason !== undefined && { reason }) }
  // Whole runs first: what goes with them need not be masked before.
  if (ages.factsMs !== undefined) {
    for await (const { run_id: runId, head_seq: seq, head_hash: headHash } of listEndedRuns(
      store.database,
      now - ages.factsMs,
    )) {
      report.events += dryRun
        ? seq
        : await store.remove([{ ...cause, kind: 'dropped', runId, seq, headHash }])
      report.runs++
      onProgress?.({ ...report })
    }
  }
  for (const [name, ageMs] of [
    ['deltas', ages.deltasMs],
    ['content', ages.contentMs],
  ] as const) {
    if (ageMs === undefined) continue
    const types = eventTypes.filter((type) => classifyContent(type) === name)
    for await (const due of listExpiredRows(store.database, { types, before: now - ageMs })) {
      const requests = await toRequests(beneath, due, { ...cause, kind: 'expired' })
      report[name] += dryRun ? requests.length : await store.remove(requests)
      onProgress?.({ ...report })
    }
  }
  return report
}

const age = valueThat('milliseconds from 0', (value) => Number.isFinite(value) && (value as number) >= 0)
const retentionAges = fields<RetentionAges>({
  deltasMs: maybe(age),
  contentMs: maybe(age),
  factsMs: maybe(age),
})
const retentionOptions = fields<RetentionOptions>({
  now: maybe(numberFrom(0)),
  by: maybe(anyText),
  reason: maybe(anyText),
  dryRun: maybe(trueOrFalse),
  onProgress: maybe(anyFunction),
})

/** Runs that have ended before a moment, in the order of their places. */
async function* listEndedRuns({ query }: StoreDatabase, before: number): AsyncGenerator<EndedRun> {
  for (let pos = 0; ;) {
    const runs = await query(({ db }) =>
      db
        .selectFrom('run')
        .select(['run_id', 'pos', 'head_seq', 'head_hash', 'ended_at'])
        .where('pos', '>', pos)
        .orderBy('pos')
        .limit(runsAtOnce),
    )
    yield* runs.filter(
      ({ ended_at }) => ended_at !== null && ended_at < before,
    ) as readonly unknown[] as readonly EndedRun[]
    const last = runs.at(-1)
    if (last === undefined || runs.length < runsAtOnce) return
    pos = last.pos
  }
}

/** Rows of some types, written before a moment, of runs that have ended, whose content is there. */
async function* listExpiredRows(
  { query, maxScanned }: StoreDatabase,
  { types, before }: { readonly types: readonly EventType[]; readonly before: number },
): AsyncGenerator<readonly EventRow[]> {
  const [end] = await query(({ db }) => db.selectFrom('event').select(({ fn }) => fn.max('pos').as('pos')))
  const lastPos = end?.pos ?? 0
  for (let pos = 0; pos < lastPos;) {
    const toPos = pos + maxScanned
    // The additions keep planners off the indexes by time and type: the search continues by place.
    const from = pos
    const rows = await query(({ db, sql }) =>
      db
        .selectFrom('event')
        .innerJoin('run', 'run.run_id', 'event.run_id')
        .select(eventRefs)
        .where('event.pos', '>', from)
        .where('event.pos', '<=', toPos)
        .where(sql<number>`event.at + 0`, '<', before)
        .where('event.commitment', 'is', null)
        .where(sql<string>`event.type || ''`, 'in', types)
        .where('run.ended_at', 'is not', null)
        .orderBy('event.pos')
        .limit(eventsAtOnce),
    )
    if (rows.length > 0) yield rows
    const last = rows.at(-1)
    pos = last && rows.length >= eventsAtOnce ? last.pos : toPos
  }
}

/** Content that is not there, or not readable, and why. */
export interface MissingContent extends Removed {
  /** How many events it is missing from. */
  readonly events: number
}

/** Counts the events of a run whose content is missing, by why it is. */
export class MissingContents {
  readonly #found = new Map<string, MissingContent>()

  handle({ removed }: RuntimeEvent): void {
    if (removed === undefined) return
    const { kind, at, by, reason } = removed
    const why = JSON.stringify([kind, at, by, reason])
    const events = (this.#found.get(why)?.events ?? 0) + 1
    this.#found.set(why, { ...removed, events })
  }

  get all(): readonly MissingContent[] {
    return [...this.#found.values()]
  }
}
