import type { Limits, RunId, RuntimeEvent, Usage } from '@tallystick/core'
import {
  type Amounts,
  type GrantField,
  grantFields,
  limitOfField,
  option,
  requireOptions,
  computeSearchesCost,
  type FallbackModel,
} from '@tallystick/core/internal'
import {
  type AgentDefinition,
  type ChildTotals,
  computeCost,
  type EventOf,
  type Grant,
  isAfterEnd,
} from '@tallystick/core/vocabulary'
import { recordedEvents, type Violation } from './laws.ts'

/** Sums of dollars are rounded. */
const ROUNDING = 1e-9

const none: Amounts = { turns: 0, toolCalls: 0, tokens: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 }

export interface BudgetViolation extends Violation {
  readonly runId: RunId
}

/**
 * Checks law 9 over the runs of a ledger, without the machine. At every event of every run: what is spent and granted
 * is within each limit; every model call, summary and child run has a grant; the grant of a model call covers every web
 * search that its provider may run; the limits of a child run are within its grant, and its parent counts what the
 * child's own events say. A provider that bills more than was granted may pass a limit, and nothing may be granted
 * after that. Returns the violations.
 */
export function checkBudgets(runs: readonly (readonly RuntimeEvent[])[]): readonly BudgetViolation[] {
  requireOptions('checkBudgets', option.listOf(recordedEvents), runs, 'runs')
  const books = new Map<RunId, Book>()
  for (const events of runs) {
    const [first] = events
    if (first) books.set(first.runId, new Book(events))
  }
  return [...books.values()].flatMap((book) => [...book.violations, ...findFamilyFaults(book, books)])
}

type Spending = Partial<ChildTotals>

/** Something that may still spend. */
interface Open {
  readonly grant: Grant
  readonly used: Amounts
}

/** The totals of one run, event by event. */
class Book {
  readonly violations: BudgetViolation[] = []
  limits: Limits = {}
  #definition: AgentDefinition | undefined
  #settled: Amounts = none
  #overrun: Amounts = none
  readonly #open = new Map<string, Open>()

  readonly events: readonly RuntimeEvent[]

  constructor(events: readonly RuntimeEvent[]) {
    this.events = events
    for (const event of events) {
      const granted = this.#grants(event)
      this.#settles(event)
      this.#check(event, granted)
    }
  }

  get runId(): RunId {
    return this.events[0]?.runId as RunId
  }

  get spent(): Amounts {
    return [...this.#open.values()].reduce((sum, { used }) => add(sum, used), this.#settled)
  }

  /** Enters what the event grants, and answers the fields of it. */
  #grants(event: RuntimeEvent): readonly GrantField[] {
    if (event.type === 'run_started') {
      this.limits = event.limits
      this.#definition = event.definition
    } else if (event.type === 'run_resumed' || event.type === 'agent_handed_off') {
      this.#definition = event.definition ?? this.#definition
    } else if (event.type === 'limit_raised') {
      this.limits = { ...this.limits, [event.limit]: event.max }
    } else if (event.type === 'model_call_started') {
      this.#begin('model', event, event.grant, event.attempt === 1 ? { ...none, turns: 1 } : none)
      this.#requirePrice(event)
      return grantFields
    } else if (event.type === 'compaction_started') {
      this.#end('summary', event.interrupted)
      this.#begin('summary', event, event.grant, none)
      return grantFields
    } else if (event.type === 'tool_started' && event.attempt === 1) {
      return this.#startTool(event)
    }
    return []
  }

  #startTool(event: EventOf<'tool_started'>): readonly GrantField[] {
    this.#settled = add(this.#settled, { ...none, toolCalls: 1 })
    if (event.child === undefined) return ['toolCalls']
    if (event.grant === undefined) this.#fault(event, `child run ${event.child} has no grant`)
    this.#begin(event.toolCallId, event, event.grant ?? {}, none)
    return grantFields
  }

  #settles(event: RuntimeEvent): void {
    if (event.type === 'usage_updated') this.#use('model', event)
    if (event.type === 'assistant_message_finished' || event.type === 'model_stream_failed') {
      this.#close('model')
    }
    if (event.type === 'context_compacted') this.#end('summary', event)
    if (event.type === 'tool_progress' && event.spent)
      this.#settled = add(this.#settled, { ...toAmounts(event.spent), turns: 1 })
    if (event.type === 'tool_result') this.#end(event.toolCallId, event.child)
  }

  #begin(name: string, event: RuntimeEvent, grant: Grant, used: Amounts): void {
    if (this.#open.has(name)) this.#fault(event, `${name} is granted something while its last grant is open`)
    this.#open.set(name, { grant, used })
  }

  #use(name: string, spending: { readonly usage?: Usage; readonly costUsd?: number }): void {
    const open = this.#open.get(name)
    if (open) this.#open.set(name, { ...open, used: { ...toAmounts(spending), turns: open.used.turns } })
  }

  #end(name: string, spending: Spending | undefined): void {
    const open = this.#open.get(name)
    if (spending !== undefined && open) this.#open.set(name, { ...open, used: toAmounts(spending) })
    this.#close(name)
  }

  #close(name: string): void {
    const open = this.#open.get(name)
    if (open === undefined) return
    this.#open.delete(name)
    this.#settled = add(this.#settled, open.used)
    this.#overrun = add(this.#overrun, computeExcess(open))
  }

  #check(event: RuntimeEvent, granted: readonly GrantField[]): void {
    const open = [...this.#open.values()]
    const spent = this.spent
    const overrun = open.reduce((sum, each) => add(sum, computeExcess(each)), this.#overrun)
    const held = open.reduce((sum, each) => add(sum, computeUnused(each)), none)
    for (const field of grantFields) {
      const max = this.limits[limitOfField[field]]
      if (max === undefined) continue
      const unbounded = open.some(({ grant }) => isUnbounded(grant, field))
      if (unbounded) this.#fault(event, `a grant does not bound ${limitOfField[field]}`)
      const sum = spent[field] + held[field] - (granted.includes(field) ? 0 : overrun[field])
      if (sum > max + ROUNDING * Math.max(1, max)) {
        this.#fault(event, `${sum} of ${limitOfField[field]} (${max}) are spent or granted`)
      }
    }
  }

  /** A model call is granted the money of its tokens, and of all web searches that its provider may run within it. */
  #requirePrice(event: EventOf<'model_call_started'>): void {
    const { model, grant } = event
    const known = [this.#definition, ...(this.#definition?.fallbacks ?? [])].find(
      (each) => each?.model.modelId === model.modelId && each.model.provider === model.provider,
    )
    // Under a limit of costs, a grant without an amount grants no money.
    const granted = grant.costUsd ?? (this.limits.maxCostUsd === undefined ? Infinity : 0)
    const cost = known ? computeMaxCost(known, event) : 0
    if (granted < cost * (1 - ROUNDING))
      this.#fault(event, `${granted} dollars are granted for ${cost} of ${model.modelId}`)
  }

  #fault({ runId, seq }: RuntimeEvent, what: string): void {
    this.violations.push({ runId, law: 9, seq, what })
  }
}

/** The most that a call can cost by its grant and by what its model may search; 0 where the model has no price. */
function computeMaxCost(
  { price, maxWebSearches = 0 }: FallbackModel,
  { grant, toolChoice }: EventOf<'model_call_started'>,
): number {
  if (price === undefined) return 0
  const { inputTokens = 0, outputTokens = 0 } = grant
  const searches = toolChoice.type === 'none' ? 0 : computeSearchesCost(price, maxWebSearches)
  return computeCost(price, { inputTokens, outputTokens }) + searches
}

/** Checks the totals that a parent and its child runs record of each other. */
function findFamilyFaults(parent: Book, books: ReadonlyMap<RunId, Book>): readonly BudgetViolation[] {
  const results = new Map<string, EventOf<'tool_result'>>()
  for (const event of parent.events) {
    if (event.type === 'tool_result') results.set(event.toolCallId, event)
  }
  return parent.events.flatMap((event) => {
    if (event.type !== 'tool_started' || event.child === undefined || event.attempt > 1) return []
    const child = books.get(event.child)
    if (child === undefined) return []
    const fault = (what: string): BudgetViolation => ({
      runId: child.runId,
      law: 9,
      seq: 1,
      what: `${what}, by event ${event.seq} of ${parent.runId}`,
    })
    const result = results.get(event.toolCallId)
    // A result without totals counts nothing: the child run was never begun.
    const totals = result && (result.child ?? {})
    const { grant = {} } = event
    return [...findLimitFaults(child, grant), ...findTotalFaults(child, grant, totals)].map(fault)
  })
}

function findLimitFaults(child: Book, grant: Grant): readonly string[] {
  const [first] = child.events
  const limits = first?.type === 'run_started' ? first.limits : {}
  return grantFields.flatMap((field) => {
    const granted = grant[field]
    const limit = limits[limitOfField[field]] ?? Infinity
    const raised = child.limits[limitOfField[field]] ?? Infinity
    return granted === undefined || Math.max(limit, raised) <= granted
      ? []
      : [`its ${limitOfField[field]} is ${Math.max(limit, raised)}, and ${granted} are granted`]
  })
}

/**
 * A child that has ended is counted by its parent for no less than it spent; where it was counted before it had ended, of
 * what it was granted.
 */
function findTotalFaults(child: Book, grant: Grant, totals: Spending | undefined): readonly string[] {
  if (totals === undefined || !child.events.some(isAfterEnd)) return []
  const counted = toAmounts(totals)
  const known = grantFields.filter((field) => totals.estimated !== true || grant[field] !== undefined)
  return known.flatMap((field) =>
    counted[field] < child.spent[field] * (1 - ROUNDING)
      ? [`its parent counts ${counted[field]} of ${field}, and it spent ${child.spent[field]}`]
      : [],
  )
}

function toAmounts(spending: Spending): Amounts {
  const { usage = {}, costUsd = 0, turns = 0, toolCalls = 0 } = spending
  const { inputTokens = 0, outputTokens = 0 } = usage
  return { turns, toolCalls, tokens: inputTokens + outputTokens, inputTokens, outputTokens, costUsd }
}

function getBound(grant: Grant, field: GrantField): number | undefined {
  if (field !== 'tokens' || grant.tokens !== undefined) return grant[field]
  const { inputTokens, outputTokens } = grant
  return inputTokens === undefined || outputTokens === undefined ? undefined : inputTokens + outputTokens
}

/** Model calls take no tool calls, and each has its own turn; a child run's grant names both. */
function isUnbounded(grant: Grant, field: GrantField): boolean {
  return field !== 'turns' && field !== 'toolCalls' && getBound(grant, field) === undefined
}

function computeUnused({ grant, used }: Open): Amounts {
  return each((field) => Math.max(0, (getBound(grant, field) ?? 0) - used[field]))
}

function computeExcess({ grant, used }: Open): Amounts {
  return each((field) => Math.max(0, used[field] - (getBound(grant, field) ?? Infinity)))
}

function add(a: Amounts, b: Amounts): Amounts {
  return each((field) => a[field] + b[field])
}

function each(amount: (field: GrantField) => number): Amounts {
  return {
    turns: amount('turns'),
    toolCalls: amount('toolCalls'),
    tokens: amount('tokens'),
    inputTokens: amount('inputTokens'),
    outputTokens: amount('outputTokens'),
    costUsd: amount('costUsd'),
  }
}
