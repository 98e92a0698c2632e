import type { RunState, RuntimeEvent, Usage } from '@tallystick/core'
import { computeLeft, type GrantField, grantFields, limitOfField, sumSpent } from '@tallystick/core/internal'
import {
  addUsage,
  type EventOf,
  type EventType,
  type Grant,
  type LimitName,
} from '@tallystick/core/vocabulary'

/** Who used tokens: a model call of a turn with its attempts, a summary, a tool that called a model, a child run. */
export interface Spender {
  readonly kind: 'turn' | 'summary' | 'tool' | 'child'
  readonly turn: number
  /** The event by which its use is known. */
  readonly seq: number
  /** The model, the tool, or the agent of the child run. */
  readonly name: string
  readonly attempts: number
  readonly usage: Usage
  readonly costUsd?: number
  /** What of it is an estimate: no provider reported it. */
  readonly estimated: readonly string[]
  readonly grant?: Grant
  readonly childRunId?: string
}

/** The use of a run after an event, and what is granted beyond it. */
export interface BudgetPoint {
  readonly seq: number
  readonly spent: number
  /** Granted to calls and child runs under way, and not spent yet. */
  readonly granted: number
  /** The limit; absent without one. */
  readonly max?: number
}

/**
 * One kind of budget over the events of a run: in each row of the columns the use after event `seqs`, which holds until the
 * next one. A limit that is not there is `NaN`. Columns are cheap to hand to another thread, however long the run is.
 */
export interface Budget {
  readonly field: GrantField
  readonly limit: LimitName
  readonly seqs: Float64Array
  readonly spent: Float64Array
  readonly granted: Float64Array
  readonly max: Float64Array
}

/** The last row of a budget up to an event; -1 before the first. */
function findRow({ seqs }: Budget, seq: number): number {
  let low = 0
  let high = seqs.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (seqs[middle]! <= seq) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** The budget after an event; `undefined` before the first. */
export function findPoint(budget: Budget, seq: number): BudgetPoint | undefined {
  const row = findRow(budget, seq)
  if (row < 0) return undefined
  const max = budget.max[row]!
  return {
    ...{ seq: budget.seqs[row]!, spent: budget.spent[row]!, granted: budget.granted[row]! },
    ...(!Number.isNaN(max) && { max }),
  }
}

/** What was granted to a child run. */
export interface ChildGrant {
  readonly childRunId: string
  readonly toolCallId: string
  readonly name: string
  readonly seq: number
  readonly grant: Grant
  /** What it used in the end; absent while it is under way. */
  readonly spent?: { readonly tokens: number; readonly costUsd?: number; readonly isEstimated: boolean }
}

export interface Money {
  readonly spenders: readonly Spender[]
  readonly budgets: readonly Budget[]
  readonly children: readonly ChildGrant[]
}

/** One attempt's numbers are totals, so a later report replaces an earlier one. */
interface OpenTurn {
  readonly spender: { -readonly [K in keyof Spender]: Spender[K] }
  readonly byAttempt: Map<number, { usage: Usage; costUsd?: number; estimated: readonly string[] }>
}

const rounding = 1e-9

/** The events after which a budget may differ. */
const changing: ReadonlySet<EventType> = new Set<EventType>([
  ...(['run_started', 'model_call_started', 'usage_updated', 'assistant_message_finished'] as const),
  ...(['model_stream_failed', 'tool_started', 'tool_progress', 'tool_result', 'run_resumed'] as const),
  ...(['compaction_started', 'context_compacted', 'limit_raised', 'run_finished'] as const),
])

/** Makes what a run used of its events, one after the other, each with the state after it. */
export class MoneyBuilder {
  readonly #spenders: { -readonly [K in keyof Spender]: Spender[K] }[] = []
  readonly #points = new Map<GrantField, BudgetPoint[]>()
  readonly #children = new Map<string, { -readonly [K in keyof ChildGrant]: ChildGrant[K] }>()
  #turn: OpenTurn | undefined
  #summary: EventOf<'compaction_started'> | undefined
  #tools = new Map<string, string>()

  add(event: RuntimeEvent, state: RunState): void {
    if (!changing.has(event.type)) return
    const handle = this.#handlers[event.type] as ((event: RuntimeEvent) => void) | undefined
    handle?.(event)
    const spent = sumSpent(state)
    const left = computeLeft(state)
    for (const field of grantFields) {
      const max = state.limits[limitOfField[field]]
      const rest = max === undefined ? 0 : max - left[field] - spent[field]
      // Sums of dollars are rounded: what is left of that is no grant.
      const granted = rest > rounding * Math.max(1, max ?? 0) ? rest : 0
      this.#notePoint(field, {
        seq: event.seq,
        spent: spent[field],
        granted,
        ...(max !== undefined && { max }),
      })
    }
  }

  build(): Money {
    const budgets = grantFields.map((field): Budget => {
      const points = this.#points.get(field) ?? []
      const read = (of: (point: BudgetPoint) => number): Float64Array => Float64Array.from(points, of)
      return {
        ...{ field, limit: limitOfField[field] },
        seqs: read(({ seq }) => seq),
        spent: read(({ spent }) => spent),
        granted: read(({ granted }) => granted),
        max: read(({ max }) => max ?? NaN),
      }
    })
    return { spenders: this.#spenders, budgets, children: [...this.#children.values()] }
  }

  #notePoint(field: GrantField, point: BudgetPoint): void {
    const points = this.#points.get(field) ?? []
    if (points.length === 0) this.#points.set(field, points)
    const last = points.at(-1)
    const isSame = last?.spent === point.spent && last.granted === point.granted && last.max === point.max
    if (!isSame) points.push(point)
  }

  /** Who used something by an event. */
  readonly #handlers: { readonly [T in EventType]?: (event: EventOf<T>) => void } = {
    model_call_started: (event) => this.#startTurn(event),
    usage_updated: (event) => this.#use(event),
    compaction_started: (event) => {
      const { interrupted, model } = event
      if (interrupted) this.#add('summary', event, model.modelId, interrupted, ['interrupted'])
      this.#summary = event
    },
    context_compacted: (event) => {
      const { model, grant } = this.#summary ?? {}
      if (event.usage) this.#add('summary', event, model?.modelId ?? 'summary', event, [], grant)
    },
    tool_started: ({ toolCallId, name, child, seq, grant = {} }) => {
      this.#tools.set(toolCallId, name)
      if (child === undefined || this.#children.has(child)) return
      this.#children.set(child, { childRunId: child, toolCallId, name, seq, grant })
    },
    tool_progress: (event) => {
      const { toolCallId, spent } = event
      if (spent === undefined) return
      const name = `${this.#tools.get(toolCallId) ?? 'tool'}, ${spent.model.modelId}`
      this.#add('tool', event, name, spent, [])
    },
    tool_result: (event) => {
      if (event.child) this.#endChild(event, event.child)
    },
  }

  #startTurn({ turn, seq, model, attempt, grant }: EventOf<'model_call_started'>): void {
    if (this.#turn?.spender.turn === turn) {
      this.#turn.spender.attempts = Math.max(this.#turn.spender.attempts, attempt)
      this.#turn.spender.name = model.modelId
      return
    }
    const spender = {
      ...{ kind: 'turn' as const, turn, seq, name: model.modelId, attempts: attempt },
      ...{ usage: {}, estimated: [], grant },
    }
    this.#turn = { spender, byAttempt: new Map() }
    this.#spenders.push(spender)
  }

  #use({ attempt, usage, costUsd, estimated = [], seq }: EventOf<'usage_updated'>): void {
    if (this.#turn === undefined) return
    const { spender, byAttempt } = this.#turn
    byAttempt.set(attempt, { usage, estimated, ...(costUsd !== undefined && { costUsd }) })
    const uses = [...byAttempt.values()]
    spender.seq = seq
    spender.usage = uses.reduce<Usage>((sum, use) => addUsage(sum, use.usage), {})
    spender.estimated = [...new Set(uses.flatMap((use) => use.estimated))]
    const costs = uses.flatMap((use) => use.costUsd ?? [])
    if (costs.length > 0) spender.costUsd = costs.reduce((sum, cost) => sum + cost, 0)
  }

  #endChild(
    { turn, seq, name }: EventOf<'tool_result'>,
    child: NonNullable<EventOf<'tool_result'>['child']>,
  ): void {
    const { usage, costUsd, runId: childRunId, estimated: isEstimated = false } = child
    const cost = costUsd === undefined ? {} : { costUsd }
    const known = this.#children.get(childRunId)
    const tokens = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
    if (known) known.spent = { tokens, isEstimated, ...cost }
    this.#spenders.push({
      ...{ kind: 'child', turn, seq, name, attempts: 1, usage, childRunId, ...cost },
      estimated: isEstimated ? ['all'] : [],
      ...(known && { grant: known.grant }),
    })
  }

  #add(
    kind: 'summary' | 'tool',
    { turn, seq }: RuntimeEvent,
    name: string,
    { usage = {}, costUsd }: { readonly usage?: Usage; readonly costUsd?: number },
    estimated: readonly string[],
    grant?: Grant,
  ): void {
    const cost = costUsd === undefined ? {} : { costUsd }
    this.#spenders.push({
      ...{ kind, turn, seq, name, attempts: 1, usage, estimated, ...cost, ...(grant && { grant }) },
    })
  }
}
