import { LedgerDamagedError, type RunId } from '@tallystick/core'
import { eachRemoval, type Store } from '../store/store.ts'
import type { CoveredHead } from './checkpoint-file.ts'
import { fault, findLinkFault, genesis, type EventRow, type Fault, type Link } from '../format/event-row.ts'

/** A head, and the checkpoint that covers it. */
export type Covered = CoveredHead & { readonly checkpoint: number }

/** A place that is not what was signed. */
export interface UncoveredPlace extends Fault {
  readonly seq?: number
  /** The checkpoint that finds it, from 1. */
  readonly checkpoint: number
}

/** How far a run was found as it was signed. */
interface CoveredRun {
  readonly events: number
  readonly broken?: UncoveredPlace
}

/** Walks the chain of a run up to the last head that is covered, and compares it at each. */
export async function coveredRunFault(
  source: Store,
  runId: RunId,
  heads: readonly Covered[],
): Promise<CoveredRun> {
  // In order of seq, which is not that of the checkpoints where the ledger was cut back in between.
  const due = heads.toSorted((a, b) => a.seq - b.seq)
  let last: Link = genesis
  const brokenAt = (seq: number, found: Fault): CoveredRun => {
    const { checkpoint } = due.find((head) => head.seq >= seq) ?? { checkpoint: 1 }
    return { events: last.seq, broken: { seq, checkpoint, ...found } }
  }
  const foundAt = (stored: EventRow): CoveredRun | undefined => {
    const found = findLinkFault(last, stored)
    if (found) return brokenAt(last.seq + 1, found)
    while (due[0]?.seq === stored.seq) {
      const other = headFault(due[0], stored)
      if (other) return brokenAt(stored.seq, other)
      due.shift()
    }
    last = stored
    return undefined
  }
  try {
    const toSeq = due.at(-1)?.seq ?? 0
    while (last.seq < toSeq) {
      const batch = await source.events({ runId, fromSeq: last.seq + 1, toSeq })
      for (const stored of batch) {
        const found = foundAt(stored)
        if (found) return found
      }
      if (batch.length === 0) break
    }
  } catch (error) {
    if (!(error instanceof LedgerDamagedError)) throw error
    return brokenAt(last.seq + 1, fault('pages', 'readable', error.message))
  }
  if (last.seq === 0) return await droppedRun(source, runId, due)
  return due.length === 0
    ? { events: last.seq }
    : brokenAt(last.seq + 1, fault('event', 'the event that was signed', 'none'))
}

/** A run that was dropped left the hash that it ended with; its heads before that can no longer be compared. */
async function droppedRun(source: Store, runId: RunId, due: readonly Covered[]): Promise<CoveredRun> {
  for await (const removal of eachRemoval(source, runId)) {
    if (removal.kind !== 'dropped') continue
    const { seq: toSeq, digest: headHash } = removal
    const wrong = due.find(({ seq, hash }) => seq > toSeq || (seq === toSeq && hash !== headHash))
    if (wrong === undefined) return { events: 0 }
    const { seq, checkpoint } = wrong
    return { events: 0, broken: { seq, checkpoint, ...fault('hash', wrong.hash, headHash) } }
  }
  const [first] = due
  const broken = {
    seq: 1,
    checkpoint: first?.checkpoint ?? 1,
    ...fault('event', 'the event that was signed', 'none'),
  }
  return { events: 0, broken }
}

function headFault({ hash }: CoveredHead, stored: EventRow): Fault | undefined {
  return hash === stored.hash ? undefined : fault('hash', hash, stored.hash)
}
