import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { type Ledger, type RuntimeEvent } from '@tallystick/core'
import { toCanonicalJson } from '@tallystick/core/vocabulary'
import type { Cross } from './crash-boundaries.ts'

/** What a ledger has acknowledged to a process. */
export type Acknowledged =
  | {
      readonly kind: 'append'
      readonly runId: string
      readonly durability: 'barrier' | 'lazy'
      readonly seq: number
      readonly events: number
      readonly digest: string
      /** How many acknowledgements stood before it was asked for: a barrier makes all of them durable. */
      readonly behind: number
    }
  | { readonly kind: 'acquire'; readonly runId: string; readonly seq: number; readonly epoch: number }
  | { readonly kind: 'put'; readonly runId: string; readonly key: string; readonly receipt?: string }
  /** The server is started again here; with it died what was acknowledged as lazy after the last barrier. */
  | { readonly kind: 'death' }

/** What says whether the events that were acknowledged are those that are there. */
export function eventsDigest(events: readonly RuntimeEvent[]): string {
  const digest = createHash('sha256')
  for (const event of events) digest.update(toCanonicalJson(event))
  return digest.digest('hex')
}

/**
 * A ledger that writes down what it has acknowledged, before its caller gets the acknowledgement; and which can be cut off
 * between the two. The lines of the file outlive the process.
 */
export function acknowledging(ledger: Ledger, path: string, cross: Cross): Ledger {
  let noted = acknowledgedIn(path).length
  const note = (acknowledged: Acknowledged): void => {
    noteAcknowledged(path, acknowledged)
    noted++
    cross(`${acknowledged.kind}: acknowledged, not used`)
  }
  return {
    ...ledger,
    async append(runId, expected, events, options) {
      const behind = noted
      const head = await ledger.append(runId, expected, events, options)
      const { durability } = options
      const digest = eventsDigest(events)
      note({ kind: 'append', runId, durability, seq: head.seq, events: events.length, digest, behind })
      return head
    },
    async acquire(runId) {
      const head = await ledger.acquire(runId)
      note({ kind: 'acquire', runId, ...head })
      return head
    },
    async put(runId, entry) {
      const isNew = await ledger.put(runId, entry)
      const { key, command } = entry
      const receipt = 'receipt' in command ? { receipt: command.receipt } : {}
      if (isNew) note({ kind: 'put', runId, key, ...receipt })
      return isNew
    },
  }
}

/** Adds to the file of acknowledgements. */
export function noteAcknowledged(path: string, acknowledged: Acknowledged): void {
  appendFileSync(path, `${JSON.stringify(acknowledged)}\n`)
}

/** The lines of the file of acknowledgements. */
export function acknowledgedIn(path: string): readonly Acknowledged[] {
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Acknowledged)
}
