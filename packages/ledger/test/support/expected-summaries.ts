import { type RunState, type RuntimeEvent, type Usage } from '@tallystick/core'
import { toRunTimes } from '@tallystick/core/internal'
import { evolve, isSuspended } from '@tallystick/core/machine'
import { addUsage, type FinishReason, type ModelRef } from '@tallystick/core/vocabulary'
import type { LedgerStats } from '@tallystick/ledger'

const hourMs = 60 * 60 * 1000
const wanted = ['answered', 'handed_back', 'stopped', 'cancelled']

/** One attempt of a model call, of a run's turn or of a summary. */
interface Attempt {
  readonly agent: string
  readonly model: ModelRef
  readonly at: number
  readonly usage?: Usage
  readonly costUsd?: number
}

/** What is compared of a run here: enough to tell whether a projection says the same. */
export interface ToldRun {
  readonly runId: string
  readonly seq: number
  readonly status: string
  readonly agents: readonly string[]
  readonly startedAt: number
  readonly lastAt: number
  readonly reason: FinishReason | undefined
  readonly isChild: boolean
  readonly approvals: readonly string[]
  readonly usage: Usage
  readonly costUsd: number | undefined
}

/** Tells of a run from its events alone, by other means than projections do. */
export function toldRun(events: readonly RuntimeEvent[]): ToldRun {
  const state = stateOf(events)
  const calls = 'calls' in state ? state.calls : []
  return {
    runId: state.runId,
    seq: events.length,
    status: statusOf(state),
    agents: events.flatMap((event) => {
      if (event.type === 'run_started') return [event.agent]
      return event.type === 'agent_handed_off' ? [event.to] : []
    }),
    ...toRunTimes(state),
    reason: state.phase === 'done' ? state.reason : undefined,
    isChild: state.parent?.relation === 'child',
    approvals: calls
      .filter(({ status }) => status === 'awaiting_approval')
      .map(({ toolCallId }) => toolCallId),
    usage: state.totals.usage,
    costUsd: state.totals.costUsd,
  }
}

/** How many runs have each status, and what was spent from a moment on, as `readLedgerStats` reports it. */
export function toldStats(
  runs: readonly (readonly RuntimeEvent[])[],
  since: number,
): Pick<LedgerStats, 'counts' | 'spending' | 'sessions'> {
  const counts = { done: 0, failed: 0, suspended: 0, unfinished: 0, unreadable: 0 }
  for (const events of runs) counts[statusOf(stateOf(events)) as keyof typeof counts]++
  const attempts = runs.flatMap(attemptsOf).filter(({ at }) => at >= since)
  const lines = Map.groupBy(attempts, ({ agent, model, at }) =>
    JSON.stringify([Math.floor(at / (24 * hourMs)), agent, model.provider, model.api, model.modelId]),
  )
  return {
    counts,
    spending: [...lines.values()].map((of) => {
      const [{ agent, model, at }] = of as [Attempt]
      const priced = of.flatMap(({ costUsd }) => costUsd ?? [])
      return {
        day: Math.floor(at / (24 * hourMs)),
        agent,
        model,
        calls: of.length,
        usage: of.reduce<Usage>((sum, { usage = {} }) => addUsage(sum, usage), {}),
        ...(priced.length > 0 && { costUsd: sumOf(priced) }),
        unpriced: of.length - priced.length,
      }
    }),
    sessions: toldSessions(runs, since),
  }
}

function toldSessions(runs: readonly (readonly RuntimeEvent[])[], since: number): LedgerStats['sessions'] {
  const sessions = Map.groupBy(runs.map(stateOf), ({ sessionId }) => sessionId)
  return [...sessions].flatMap(([sessionId, states]) => {
    const lastAt = Math.max(...states.map(({ at }) => at))
    if (sessionId === undefined || lastAt < since) return []
    const totals = states.map((state) => state.totals)
    const priced = totals.flatMap(({ costUsd }) => costUsd ?? [])
    return [
      {
        sessionId,
        runs: states.length,
        lastAt,
        startedAt: Math.min(...states.map(({ startedAt }) => startedAt)),
        turns: sumOf(totals.map(({ turns, children }) => turns + children.turns)),
        toolCalls: sumOf(totals.map(({ toolCalls, children }) => toolCalls + children.toolCalls)),
        usage: totals.reduce<Usage>((sum, { usage }) => addUsage(sum, usage), {}),
        ...(priced.length > 0 && { costUsd: sumOf(priced) }),
        unpriced: states.length - priced.length,
      },
    ]
  })
}

/** In billionths, so that the order of the sum does not matter. */
function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + Math.round(value * 1e9), 0) / 1e9
}

function stateOf(events: readonly RuntimeEvent[]): RunState {
  const state = events.reduce<RunState | undefined>(evolve, undefined)
  if (state === undefined) throw new Error('A run has no events.')
  return state
}

function statusOf(state: RunState): string {
  if (state.phase === 'done') return wanted.includes(state.reason) ? 'done' : 'failed'
  return isSuspended(state) ? 'suspended' : 'unfinished'
}

/** The model calls of a run; of a fork only those that it did not share. */
function attemptsOf(events: readonly RuntimeEvent[]): readonly Attempt[] {
  const attempts = new Map<string, Attempt>()
  let [agent, shared] = ['', 0]
  for (const event of events) {
    if (event.type === 'run_started') {
      agent = event.agent
      if (event.parent?.relation === 'fork') shared = event.parent.seq
    }
    if (event.type === 'agent_handed_off') agent = event.to
    if (event.seq > shared) hearAttempt(attempts, agent, event)
  }
  return [...attempts.values()]
}

function hearAttempt(attempts: Map<string, Attempt>, agent: string, event: RuntimeEvent): void {
  const { at, turn } = event
  const summaries = [...attempts.keys()].filter((key) => key.startsWith('summary')).length
  if (event.type === 'model_call_started')
    attempts.set(`${turn} ${event.attempt}`, { agent, model: event.model, at })
  if (event.type === 'compaction_started')
    attempts.set(`summary ${summaries + 1}`, { agent, model: event.model, at })
  if (event.type === 'usage_updated') report(attempts, `${turn} ${event.attempt}`, event)
  if (event.type === 'context_compacted') report(attempts, `summary ${summaries}`, event)
}

function report(
  attempts: Map<string, Attempt>,
  key: string,
  { usage, costUsd }: { readonly usage?: Usage; readonly costUsd?: number },
): void {
  const before = attempts.get(key)
  if (before === undefined || usage === undefined) return
  const later = { ...before, usage: { ...before.usage, ...usage } }
  attempts.set(key, { ...later, ...(costUsd !== undefined && { costUsd }) })
}
