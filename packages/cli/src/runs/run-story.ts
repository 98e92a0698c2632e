import type { Ledger, RuntimeEvent } from '@tallystick/core'
import { getOwn, omitUndefined } from '@tallystick/core/internal'
import {
  toCanonicalJson,
  type EventOf,
  type EventType,
  eventTypes,
  type JsonObject,
  type ModelFailure,
  type Outcome,
  type ResultPart,
  type ToolCallId,
} from '@tallystick/core/vocabulary'
import { formatContent, type CallEnding, maxOutlinedValues, type ToolOutline } from '@tallystick/ledger'
import { toOneLine } from '../command/text.ts'

/** A decision about a call, with the event that holds it. */
export type CallDecision = Pick<
  EventOf<'approval_decided'>,
  'seq' | 'at' | 'approved' | 'by' | 'via' | 'input' | 'reason'
>

/** The story of a tool call: the request, what guardrails and approvers changed, what ran, and how it ended. */
export interface CallStory {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly turn: number
  /** The attempt of the model call that asked for it. */
  readonly attempt: number
  /** The input as the model wrote it. */
  readonly requested: JsonObject
  readonly requestedSeq: number
  /** The text that the model wrote, if that is not a JSON object. */
  readonly malformed?: string
  /** The input as guardrails changed it. */
  readonly guarded?: JsonObject
  readonly guardedSeq?: number
  readonly decision?: CallDecision
  /** The input that the tool was started with; absent if it was not started. */
  readonly executed?: JsonObject
  readonly startedSeq?: number
  readonly outcome?: Outcome
  readonly content?: readonly ResultPart[]
  readonly durationMs?: number
  /** The call of another run whose recorded result was served, so that nothing ran. */
  readonly reused?: ToolCallId
  readonly resultSeq?: number
}

/** Collects the stories of the calls of a run, event by event. */
export class CallStories {
  readonly #stories = new Map<ToolCallId, CallStory>()

  /** The calls so far, in the order of their requests. */
  get all(): readonly CallStory[] {
    return [...this.#stories.values()]
  }

  of(toolCallId: ToolCallId): CallStory | undefined {
    return this.#stories.get(toolCallId)
  }

  follow(event: RuntimeEvent): void {
    if (event.type === 'tool_request_ready') {
      const { toolCallId, name, turn, attempt, input: requested, malformed, seq: requestedSeq } = event
      this.#stories.set(toolCallId, {
        ...{ toolCallId, name, turn, attempt, requested, requestedSeq },
        ...(malformed && { malformed: malformed.text }),
      })
    }
    if (event.type === 'tool_requests_collected') {
      const { calls, seq: guardedSeq } = event
      for (const { toolCallId, input: guarded } of calls)
        if (guarded) this.#add(toolCallId, { guarded, guardedSeq })
    }
    if (event.type === 'approval_decided') {
      const { toolCallId, seq, at, approved, by, via, input, reason } = event
      this.#add(toolCallId, { decision: { seq, at, approved, by, ...omitUndefined({ via, input, reason }) } })
    }
    if (event.type === 'tool_started') {
      const { decision, guarded, requested = {} } = this.#stories.get(event.toolCallId) ?? {}
      const executed = decision?.input ?? guarded ?? requested
      this.#add(event.toolCallId, { executed, startedSeq: event.seq })
    }
    if (event.type === 'tool_result') {
      const { toolCallId, outcome, content, durationMs, reused, seq } = event
      this.#add(toolCallId, { outcome, content, resultSeq: seq, ...omitUndefined({ durationMs, reused }) })
    }
  }

  #add(toolCallId: ToolCallId, more: Partial<CallStory>): void {
    const story = this.#stories.get(toolCallId)
    if (story) this.#stories.set(toolCallId, { ...story, ...more })
  }
}

/** The events of a part of a story, and the time of the last. */
interface Placed {
  readonly turn: number
  readonly fromSeq: number
  readonly toSeq: number
  /** Milliseconds since 1970 UTC. */
  readonly at: number
}

export type StoryPart =
  | (Placed & { readonly kind: 'input'; readonly event: EventOf<'input_received'> })
  | (Placed & { readonly kind: 'history'; readonly messages: number })
  | (Placed & {
      readonly kind: 'reply'
      readonly event: EventOf<'assistant_message_finished'>
      readonly tookMs: number
    })
  | (Placed & { readonly kind: 'failed' } & FailedAttempt)
  | (Placed & { readonly kind: 'calls'; readonly calls: readonly CallStory[] })
  | (Placed & { readonly kind: 'note'; readonly event: RuntimeEvent })

/** A failed model call, with its withdrawn text and calls. */
interface FailedAttempt {
  readonly attempt: number
  readonly failure: ModelFailure
  readonly retryAt?: number
  readonly tookMs: number
  /** Text that had streamed and is in no reply. */
  readonly withdrawn: string
  readonly withdrawnCalls: readonly CallStory[]
}

export interface RunStory {
  readonly parts: readonly StoryPart[]
  readonly calls: readonly CallStory[]
}

/** Builds the story of a run from its events, in order. */
export class StoryBuilder {
  readonly #calls = new CallStories()
  /** Each part is made at the end, when the results of its calls are known. */
  readonly #parts: ((ledger: Ledger) => StoryPart | Promise<StoryPart>)[] = []
  /** The attempts of model calls, by turn and number, whose text is in a reply. */
  readonly #kept = new Set<string>()
  #called: EventOf<'model_call_started'> | undefined

  follow(event: RuntimeEvent): void {
    this.#calls.follow(event)
    const { seq, turn, at } = event
    const here = { turn, fromSeq: seq, toSeq: seq, at }
    const { seq: fromSeq = seq, at: startedAt = at } = this.#called ?? {}
    const sinceCall = { ...here, fromSeq, tookMs: at - startedAt }
    if (event.type === 'model_call_started') this.#called = event
    if (event.type === 'input_received') this.#parts.push(() => ({ ...here, kind: 'input', event }))
    if (event.type === 'history_carried') {
      this.#parts.push(() => ({ ...here, kind: 'history', messages: event.messages.length }))
    }
    if (event.type === 'assistant_message_finished') {
      this.#kept.add(`${turn}.${event.attempt}`)
      this.#parts.push(() => ({ ...sinceCall, kind: 'reply', event }))
    }
    if (event.type === 'model_stream_failed') {
      this.#parts.push(async (ledger) => ({
        ...sinceCall,
        kind: 'failed',
        ...(await this.#readFailed(event, ledger)),
      }))
    }
    if (event.type === 'tool_requests_collected') {
      this.#parts.push(() => {
        const calls = event.calls.flatMap(({ toolCallId }) => this.#calls.of(toolCallId) ?? [])
        const toSeq = Math.max(seq, ...calls.map(({ resultSeq = 0 }) => resultSeq))
        return { ...here, kind: 'calls', toSeq, calls }
      })
    }
    if (roles[event.type] === 'note') this.#parts.push(() => ({ ...here, kind: 'note', event }))
  }

  /** Returns the story. The text of failed attempts is read from the ledger only here. */
  async end(ledger: Ledger): Promise<RunStory> {
    const parts: StoryPart[] = []
    for (const toPart of this.#parts) parts.push(await toPart(ledger))
    return { parts, calls: this.#calls.all }
  }

  async #readFailed(
    { runId, turn, attempt, failure, retryAt }: EventOf<'model_stream_failed'>,
    ledger: Ledger,
  ): Promise<Omit<FailedAttempt, 'tookMs'>> {
    const failed = { attempt, failure, ...omitUndefined({ retryAt }) }
    if (this.#kept.has(`${turn}.${attempt}`)) return { ...failed, withdrawn: '', withdrawnCalls: [] }
    let withdrawn = ''
    for await (const event of ledger.find({ runId, turn, types: ['assistant_text_delta'] })) {
      if (event.type === 'assistant_text_delta' && event.attempt === attempt) withdrawn += event.text
    }
    const withdrawnCalls = this.#calls.all.filter((call) => call.turn === turn && call.attempt === attempt)
    return { ...failed, withdrawn, withdrawnCalls }
  }
}

/** Events with a part of their own are notes; `part` events belong to inputs, replies and calls; null stays out. */
const roles: Readonly<Record<EventType, 'note' | 'part' | null>> = {
  run_started: null,
  run_resumed: 'note',
  run_finished: 'note',
  schedule_set: 'note',
  schedule_fired: 'note',
  history_carried: 'part',
  session_edited: 'note',
  history_edited: 'note',
  input_received: 'part',
  input_settled: 'note',
  model_call_started: 'part',
  assistant_started: null,
  assistant_text_delta: null,
  assistant_reasoning_delta: null,
  tool_input_delta: null,
  tool_request_ready: 'part',
  usage_updated: null,
  assistant_message_finished: 'part',
  model_stream_failed: 'part',
  tool_requests_collected: 'part',
  approval_requested: null,
  approval_decided: 'part',
  approval_added: 'note',
  approval_applied: 'note',
  approval_withdrawn: 'note',
  tool_started: 'part',
  tool_progress: null,
  tool_deferred: 'note',
  tool_attempt_failed: null,
  tool_result: 'part',
  background_ended: 'note',
  tool_results_injected: null,
  compaction_started: 'note',
  context_compacted: 'note',
  agent_handed_off: 'note',
  guardrail_tripped: 'note',
  guardrails_checked: null,
  output_checked: 'note',
  limit_reached: 'note',
  limit_raised: 'note',
  cancel_requested: 'note',
  feedback_given: 'note',
}

/** The types of events that a story is made of. */
export const storyTypes: readonly EventType[] = eventTypes.filter((type) => roles[type] !== null)

const maxValues = 5
const maxKeys = 3
const maxNameCharacters = 60
const maxValueCharacters = 30
const maxResultCharacters = 40

/** Sums up calls of one tool on one line: `search_orders × 20; all empty; query: "a", "b", … 15 more`. */
export function formatSimilar(calls: readonly CallStory[]): string {
  return calls.length === 0 ? '' : formatOutline(toOutline(calls))
}

export function formatOutline(outline: ToolOutline): string {
  const { calls, endings } = outline
  const tool = toOneLine(outline.name, maxNameCharacters)
  const name = calls === 1 ? tool : `${tool} × ${calls}`
  const groups = endings.map(({ ending, count }) =>
    count === calls ? (count === 1 ? ending : `all ${ending}`) : `${count} ${ending}`,
  )
  const open = endings.reduce((left, { count }) => left - count, calls)
  const ended = [...groups, ...(open > 0 ? [`${open} open`] : [])].join(', ')
  return [name, ended, formatVarying(outline)].filter((text) => text !== '').join('; ')
}

/** Returns true for two calls of one tool with the same outcome and result. */
export function haveEndedAlike(one: CallStory, other: CallStory): boolean {
  return (
    one.name === other.name &&
    one.outcome !== undefined &&
    one.outcome === other.outcome &&
    formatContent(one.content ?? []) === formatContent(other.content ?? [])
  )
}

/** Outlines calls of one tool, as the outline of a run does for all of them. */
function toOutline(calls: readonly CallStory[]): ToolOutline {
  const endings = Map.groupBy(
    calls.filter(({ outcome }) => outcome !== undefined),
    ({ outcome, content = [] }): CallEnding['ending'] => {
      const text = formatContent(content).trim()
      // That a result is empty says more than that the call succeeded.
      const isEmpty = outcome === 'success' && ['', '[]', '{}', 'null', '""'].includes(text)
      return isEmpty ? 'empty' : outcome!
    },
  )
  const inputs = calls.map(({ requested }) => requested)
  const keys = [...new Set(inputs.flatMap((input) => Object.keys(input)))]
  return {
    name: calls[0]?.name ?? '',
    calls: calls.length,
    endings: [...endings].map(([ending, { length }]) => ({ ending, count: length })),
    inputs: keys.map((key) => ({
      key,
      values: inputs.map((input) => {
        const value = getOwn(input, key)
        return value === undefined ? null : toCanonicalJson(value)
      }),
    })),
  }
}

/** The arguments that differ between the calls, with their values. */
function formatVarying({ calls, inputs }: ToolOutline): string {
  if (calls < 2) return ''
  const varying = inputs.flatMap(({ key, values }) => {
    const texts = [
      ...new Set(values.map((value) => (value === null ? 'nothing' : toOneLine(value, maxValueCharacters)))),
    ]
    if (texts.length < 2) return []
    const more = texts.length - maxValues
    const count = texts.length > maxOutlinedValues ? `at least ${more}` : `${more}`
    return [
      `${toOneLine(key, maxNameCharacters)}: ${texts.slice(0, maxValues).join(', ')}${more > 0 ? `, … ${count} more` : ''}`,
    ]
  })
  if (varying.length === 0) return 'always with the same input'
  const left = varying.length - maxKeys
  return [...varying.slice(0, maxKeys), ...(left > 0 ? [`${left} more differ`] : [])].join('; ')
}

/** Sums up calls that ended alike, with their result. */
export function formatAlike(calls: readonly CallStory[]): string {
  const result = toOneLine(formatContent(calls[0]?.content ?? []), maxResultCharacters)
  return `${formatSimilar(calls)}\nresult each time: ${result === '' ? 'nothing' : result}`
}
