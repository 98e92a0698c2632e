import { type RunId, type RuntimeEvent, joinText } from '@tallystick/core'
import { getOwn, type TodoItem, readTodoItems, todoListName } from '@tallystick/core/internal'
import {
  toCanonicalJson,
  type EventOf,
  type EventType,
  type JsonObject,
  type Outcome,
  type ToolCallId,
} from '@tallystick/core/vocabulary'

/** A summary of a run's events over all its turns, beside its state. It stays short, however many calls there were. */
export interface RunOutline {
  /** Those that had the conversation, in order: the one that the run was started with, and each that took over. */
  readonly agents: readonly string[]
  /** The runs that do the work of a call, in order; in a fork also those that another run has had do it. */
  readonly children: readonly RunId[]
  readonly requests: number
  readonly results: number
  /** The requests without a result. */
  readonly open: readonly OpenRequest[]
  /** In the order in which tools were first asked for; beyond a hundred, calls are counted under the name `…`. */
  readonly tools: readonly ToolOutline[]
  /** The last to-do list that the agent kept, and the event of the request that made it. */
  readonly todo?: { readonly seq: number; readonly items: readonly TodoItem[] }
}

/** A tool request without a result, and the event that holds it. */
export interface OpenRequest {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly seq: number
}

/** The calls of a tool, and how they ended. */
export interface ToolOutline {
  readonly name: string
  /** How many calls of it there were. */
  readonly calls: number
  /** How those of them ended that have ended, in the order in which the endings first came. */
  readonly endings: readonly CallEnding[]
  /** The first fifty keys of their inputs. */
  readonly inputs: readonly InputOutline[]
}

/** How many calls ended in one way. A success that said nothing is `empty`. */
export interface CallEnding {
  readonly ending: Outcome | 'empty'
  readonly count: number
}

/** The values of one key in the inputs of several calls. */
export interface InputOutline {
  readonly key: string
  /**
   * Each other one once, in the order in which they first came, a hundred and one at most: the beginning of its canonical JSON;
   * `null` if a call had none.
   */
  readonly values: readonly (string | null)[]
}

/** How many values of a key an outline distinguishes. */
export const maxOutlinedValues = 100

const maxTools = 100
const maxKeys = 50
const maxNameCharacters = 200
const maxValueCharacters = 120

interface Tool {
  readonly name: string
  calls: number
  readonly endings: Map<Outcome | 'empty', number>
  readonly inputs: Map<string, Set<string | null>>
}

/** Builds the outline of a run from its events, in order. */
export class OutlineFold {
  readonly #agents: string[] = []
  readonly #children = new Set<RunId>()
  #requests = 0
  #results = 0
  readonly #open = new Map<ToolCallId, OpenRequest>()
  readonly #tools = new Map<string, Tool>()
  #todo: RunOutline['todo']

  readonly #takes: { readonly [T in EventType]: ((event: EventOf<T>) => void) | null } = {
    run_started: ({ agent }) => this.#agents.push(agent),
    schedule_set: null,
    schedule_fired: null,
    history_carried: null,
    session_edited: null,
    history_edited: null,
    run_resumed: null,
    run_finished: null,
    input_received: null,
    input_settled: null,
    model_call_started: null,
    assistant_started: null,
    assistant_text_delta: null,
    assistant_reasoning_delta: null,
    tool_input_delta: null,
    tool_request_ready: (event) => this.#request(event),
    usage_updated: null,
    assistant_message_finished: null,
    model_stream_failed: null,
    tool_requests_collected: null,
    approval_requested: null,
    approval_decided: null,
    approval_added: null,
    approval_applied: null,
    approval_withdrawn: null,
    tool_started: ({ child }) => child !== undefined && this.#children.add(child),
    tool_progress: null,
    tool_deferred: null,
    tool_attempt_failed: null,
    tool_result: (event) => this.#end(event),
    background_ended: null,
    tool_results_injected: null,
    compaction_started: null,
    context_compacted: null,
    agent_handed_off: ({ to }) => this.#agents.push(to),
    guardrail_tripped: null,
    guardrails_checked: null,
    output_checked: null,
    limit_reached: null,
    limit_raised: null,
    cancel_requested: null,
    feedback_given: null,
  }

  add(event: RuntimeEvent): void {
    const take = this.#takes[event.type] as ((event: RuntimeEvent) => void) | null | undefined
    take?.(event)
  }

  get outline(): RunOutline {
    return {
      agents: [...this.#agents],
      children: [...this.#children],
      requests: this.#requests,
      results: this.#results,
      open: [...this.#open.values()],
      tools: [...this.#tools.values()].map(({ name, calls, endings, inputs }) => ({
        ...{ name, calls },
        endings: [...endings].map(([ending, count]) => ({ ending, count })),
        inputs: [...inputs].map(([key, values]) => ({ key, values: [...values] })),
      })),
      ...(this.#todo && { todo: this.#todo }),
    }
  }

  #request({ toolCallId, name, seq, input }: EventOf<'tool_request_ready'>): void {
    this.#requests++
    this.#open.set(toolCallId, { toolCallId, name, seq })
    const tool = this.#ensureTool(name)
    for (const [key, values] of tool.inputs) addValue(values, formatValue(input, key))
    for (const key of Object.keys(input)) {
      if (tool.inputs.has(key) || tool.inputs.size >= maxKeys) continue
      const value = formatValue(input, key)
      tool.inputs.set(key, new Set(tool.calls > 0 ? [null, value] : [value]))
    }
    tool.calls++
  }

  #end({ toolCallId, outcome, content }: EventOf<'tool_result'>): void {
    this.#results++
    const request = this.#open.get(toolCallId)
    if (request === undefined) return
    this.#open.delete(toolCallId)
    const { endings } = this.#ensureTool(request.name)
    const ending = outcome === 'success' && isEmpty(content) ? 'empty' : outcome
    endings.set(ending, (endings.get(ending) ?? 0) + 1)
    if (outcome !== 'success' || request.name !== todoListName || request.seq < (this.#todo?.seq ?? 0)) return
    const items = readTodoItems(content)
    if (items) this.#todo = { seq: request.seq, items }
  }

  #ensureTool(name: string): Tool {
    const cut = name.slice(0, maxNameCharacters)
    const known = this.#tools.has(cut) || this.#tools.size < maxTools ? cut : '…'
    const found = this.#tools.get(known)
    if (found) return found
    const tool = { name: known, calls: 0, endings: new Map(), inputs: new Map() }
    this.#tools.set(known, tool)
    return tool
  }
}

/** Adds a value. Keeps one more than an outline distinguishes, as a sign that there are more. */
function addValue(values: Set<string | null>, value: string | null): void {
  if (values.size <= maxOutlinedValues) values.add(value)
}

function formatValue(input: JsonObject, key: string): string | null {
  const value = getOwn(input, key)
  if (value === undefined) return null
  const isLong = typeof value === 'string' && value.length > maxValueCharacters
  return toCanonicalJson(isLong ? value.slice(0, maxValueCharacters) : value).slice(0, maxValueCharacters)
}

/** Texts of results that say nothing. */
const emptyTexts: ReadonlySet<string> = new Set(['', '[]', '{}', 'null', '""'])

/** An empty result says more than that it was a success. */
function isEmpty(content: EventOf<'tool_result'>['content']): boolean {
  return content.every(({ type }) => type === 'text') && emptyTexts.has(joinText(content).trim())
}
