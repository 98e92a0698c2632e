import { ConfigurationError, RunNotFoundError, type Ledger, type RunId } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/kit'
import { requireTextId } from '@tallystick/core/store-kit'
import { removableStoreOf, type RemovableStore } from './removable-store.ts'
import { segmentsOf } from '../content/event/decoded-events.ts'
import type { StoredSegment } from '../record/stored-row.ts'
import { takeAway } from './removals-of.ts'

/** How many events are read, and taken away, at once. */
const eventsAtOnce = 512

/** Who removes content, and why. Both stay on record for ever, so they must not repeat the content. */
export interface RedactOptions {
  readonly by: string
  readonly reason: string
  /** Milliseconds since 1970 UTC. Default: now. */
  readonly at?: number | undefined
}

const { anyText, fields, maybe, numberFrom, textOr, valueThat } = option
const redactOptions = fields<RedactOptions>({ by: anyText, reason: anyText, at: maybe(numberFrom(0)) })
const redactedSeqs = textOr(['all'], valueThat("a list of event numbers, or 'all'", Array.isArray))

/**
 * Removes the content of events of a run, for good. Of each event its facts stay, and who removed the content and why.
 * The chain of hashes still verifies. A run that is resumed continues without the content. Returns how many events lost
 * their content; those that had lost it before are not counted. Deltas that are packed together lose their content
 * together, if one of them is named; each then has the time of the last one. Name events that repeat the content as
 * well: a text is also in the finished message, a tool's input in the request and in the message, and messages are
 * carried into later runs of the session. `find` helps to find them. Rejects with `RunNotFoundError` for an unknown
 * run, and with `ConfigurationError` for an event that the run does not have, wrong options, or a ledger that cannot
 * remove content.
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
  const store = requireRemovable(ledger)
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
  const taking = { kind: 'redacted', at, by, reason } as const
  let removed = 0
  for (let fromSeq = 1; fromSeq <= head.seq; fromSeq += eventsAtOnce) {
    const toSeq = Math.min(fromSeq + eventsAtOnce - 1, head.seq)
    const events = await store.events(runId, fromSeq, toSeq)
    const due = events
      .flatMap(segmentsOf)
      .filter(
        (segment) =>
          segment.payload !== undefined && isWithin(segment, { fromSeq, toSeq }) && isChosen(segment, chosen),
      )
    if (due.length > 0) removed += await takeAway(store, due, taking)
  }
  return removed
}

/** Whether a segment holds any event of a range: its row may hold others. */
function isWithin(
  { firstSeq, seq }: StoredSegment,
  range: { readonly fromSeq: number; readonly toSeq: number },
): boolean {
  return seq >= range.fromSeq && (firstSeq ?? seq) <= range.toSeq
}

/** Whether any of the events was chosen; all of them, without a choice. */
function isChosen(
  { firstSeq, seq: lastSeq }: StoredSegment,
  chosen: ReadonlySet<number> | undefined,
): boolean {
  if (chosen === undefined) return true
  for (let seq = firstSeq ?? lastSeq; seq <= lastSeq; seq++) if (chosen.has(seq)) return true
  return false
}

/** The store beneath a ledger. Throws a `ConfigurationError` where nothing can be taken away from it. */
export function requireRemovable(ledger: Ledger): RemovableStore {
  const store = removableStoreOf(ledger)
  if (store) return store
  throw new ConfigurationError(
    'This ledger cannot remove content: only sqliteLedger and postgresLedger can. ' +
      'Hand over the ledger itself, not something wrapped around it.',
  )
}
