import type { Ledger, RunId } from '@tallystick/core'
import { startOf } from '@tallystick/core/kit'
import { parseRunId, type EventOf } from '@tallystick/core/vocabulary'
import { runNotFound } from '../http/problem.ts'
import { includes, type Principal } from './principal.ts'

/** What decides who sees a run. */
export interface RunFacts {
  readonly agent: string
  readonly sessionId?: string | undefined
  readonly subject?: string | undefined
}

/** Whether a principal sees a run with these facts. */
export function sees({ sees: scope }: Principal, { agent, sessionId, subject }: RunFacts): boolean {
  if (scope === 'everything') return true
  return (
    includes(scope.agents, agent) && includes(scope.sessions, sessionId) && includes(scope.subjects, subject)
  )
}

/** Returns the id of a run that the principal sees. For any other run it throws as if the run did not exist. */
export async function requireVisible(ledger: Ledger, principal: Principal, text: string): Promise<RunId> {
  const runId = parseRunId(text)
  if (runId === undefined) throw runNotFound(text)
  if (!(await isVisible(ledger, principal, runId))) throw runNotFound(text)
  return runId
}

/** Whether a principal sees a run; `false` for a run that does not exist. */
export async function isVisible(ledger: Ledger, principal: Principal, runId: RunId): Promise<boolean> {
  const first = await startOfRoot(ledger, runId)
  return first !== undefined && sees(principal, first)
}

/** Returns the first event of a run's root: its parent's parent, and so on; of the run itself if it has no parent. */
export async function startOfRoot(ledger: Ledger, runId: RunId): Promise<EventOf<'run_started'> | undefined> {
  for (let id = runId; ;) {
    const first = await startOf(ledger, id)
    if (first?.parent?.relation !== 'child') return first
    id = first.parent.runId
  }
}

/** The last run of a session. */
export async function lastRunOf(ledger: Ledger, sessionId: string): Promise<RunId | undefined> {
  for await (const { runId } of ledger.runs({ sessionId, limit: 1 })) return runId
  return undefined
}
