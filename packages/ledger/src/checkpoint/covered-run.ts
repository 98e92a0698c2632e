import { LedgerDamagedError, type RunId } from '@tallystick/core'
import type { AuditSource } from '../record/audit-source.ts'
import { hexOf, linkHash } from '../record/chain.ts'
import type { CoveredHead } from './checkpoint-file.ts'
import { fault, genesis, linkFault, type Fault, type Link } from '../record/link-check.ts'
import type { StoredRow } from '../record/stored-row.ts'

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
  source: AuditSource,
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
  const foundAt = (stored: StoredRow): CoveredRun | undefined => {
    const found = chainFault(last, stored)
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
    for await (const batch of source.events(runId, due.at(-1)?.seq ?? 0)) {
      for (const stored of batch) {
        const found = foundAt(stored)
        if (found) return found
      }
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
async function droppedRun(source: AuditSource, runId: RunId, due: readonly Covered[]): Promise<CoveredRun> {
  for await (const removal of source.removals(runId)) {
    if (removal.kind !== 'dropped') continue
    const { toSeq, headHash = 'none' } = removal
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

function headFault({ hash }: CoveredHead, stored: StoredRow): Fault | undefined {
  const found = hexOf(stored.hash)
  return hash === found ? undefined : fault('hash', hash, found)
}

/** What breaks the chain; a payload that is gone does not. */
function chainFault(previous: Link, stored: StoredRow): Fault | undefined {
  const found = linkFault(previous, stored)
  if (found?.what !== 'payload' || stored.payload !== undefined) return found
  const hash = linkHash(previous.hash, stored, stored.bodyCommit)
  return Buffer.compare(hash, stored.hash) === 0 ? undefined : fault('hash', hexOf(hash), hexOf(stored.hash))
}
