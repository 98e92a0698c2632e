import type { Ledger, RunId } from '@tallystick/core'
import type { ParentRef } from '@tallystick/core/vocabulary'

/** Where a run came from, as its first event says; `undefined` where it came from nothing. */
export async function parentOf(ledger: Ledger, runId: RunId): Promise<ParentRef | undefined> {
  // `startOf` of core would load the whole runtime, which no list needs.
  for await (const event of ledger.read(runId, { toSeq: 1 })) {
    return event.type === 'run_started' ? event.parent : undefined
  }
  return undefined
}

/** The parents of a run: the one that its result goes to first, the root last. */
export async function parentsOf(ledger: Ledger, runId: RunId): Promise<readonly RunId[]> {
  const found: RunId[] = []
  for (let at = runId; ;) {
    const parent = await parentOf(ledger, at)
    if (parent?.relation !== 'child' || found.includes(parent.runId)) return found
    at = parent.runId
    found.push(at)
  }
}
