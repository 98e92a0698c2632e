import type { Ledger, RunId } from '@tallystick/core'
import { RunNotFoundError } from '@tallystick/core'
import { runSummary, type ListedRun, type RunSummary } from '@tallystick/ledger'
import type { ChildWait } from './waits.ts'
import type { WaitedFor } from './run-status.ts'

/** What a run and its child runs wait for now. */
export async function summaryWaits(ledger: Ledger, summary: RunSummary): Promise<WaitedFor> {
  const { runId, waits } = summary
  let approvals: WaitedFor['approvals'] = waits.approvals.map((call) => ({ ...call, runId }))
  let deferred: WaitedFor['deferred'] = waits.deferred.map((call) => ({ ...call, runId }))
  const children: ChildWait[] = []
  for (const wait of waits.children) {
    const child = await childSummary(ledger, wait.runId)
    children.push({ ...wait, status: childStatusOfSummary(child) })
    if (child === undefined || child.status === 'unreadable' || childStatusOfSummary(child) === 'done') continue
    const below = await summaryWaits(ledger, child)
    approvals = [...approvals, ...below.approvals]
    deferred = [...deferred, ...below.deferred]
    children.push(...below.children)
  }
  return { approvals, deferred, children }
}

async function childSummary(ledger: Ledger, runId: RunId): Promise<ListedRun | undefined> {
  try {
    return await runSummary(ledger, runId)
  } catch (error) {
    if (error instanceof RunNotFoundError) return undefined
    throw error
  }
}

function childStatusOfSummary(child: ListedRun | undefined): ChildWait['status'] {
  if (child === undefined) return 'absent'
  return child.status === 'failed' ? 'done' : child.status
}
