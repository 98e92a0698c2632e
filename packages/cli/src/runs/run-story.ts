import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { getOwn, omitUndefined } from '@tallystick/core/internal'
import {
  canonicalJson,
  type EventOf,
  type EventType,
  type JsonObject,
  type ModelFailure,
  type Outcome,
  type ResultPart,
  type ToolCallId,
} from '@tallystick/core/vocabulary'
import { type CallEnding, maxOutlinedValues, type ToolOutline } from '@tallystick/ledger'
import { contentText, oneLine } from '../command/text.ts'

/** A decision about a call, with the event that holds it. */
export type CallDecision = Pick<
  EventOf<'approval_decided'>,
  'seq' | 'at' | 'approved' | 'by' | 'via' | 'input' | 'reason'
>

/** What became of a tool call: what was asked for, what guardrails and approvers made of it, what ran, and how it ended. */
export interface CallStory {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly turn: number
  /** Of the model call that asked for it. */
  readonly attempt: number
  /** What the model asked for, and the event that says so. */
  readonly requested: JsonObject
  readonly requestedSeq: number
  /** What the model wrote, where it is no JSON object. */
  readonly malformed?: string
  /** What guardrails put in the place of the input. */
  readonly guarded?: JsonObject
  readonly guardedSeq?: number
  readonly decision?: CallDecision
  /** What the tool was started with; absent where it was not. */
  readonly executed?: JsonObject
  readonly startedSeq?: number
  readonly outcome?: Outcome
  readonly content?: readonly ResultPart[]
  readonly durationMs?: number
  /** The call of another run whose recorded result was served, so that nothing ran. */
  readonly reused?: ToolCallId
  readonly resultSeq?: number
}

/** Puts the stories of the calls of a run together, event by event. */
export class CallStories {
  readonly #stories = new Map<ToolCallId, CallStory>()

  /** Every call so far, in the order in which they were asked for. */
  get all(): readonly CallStory[] {
    return [...this.#stories.values()]
  }

  of(toolCallId: ToolCallId): CallStory | undefined {
    return this.#stories.get(toolCallId)
  }

  follow(event: RuntimeEvent): void {
    if (event.type === 'tool_request_ready') this.#begin(event)
    if (event.type === 'tool_requests_collected') this.#guard(event)
    if (event.type === 'approval_decided') this.#decide(event)
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

  #guard({ calls, seq }: EventOf<'tool_requests_collected'>): void {
    for (const { toolCallId, input } of calls) {
      if (input) this.#add(toolCallId, { guarded: input, guardedSeq: seq })
    }
  }

  #decide({ toolCallId, ...event }: EventOf<'approval_decided'>): void {
    const { seq, at, approved, by, via, input, reason } = event
    this.#add(toolCallId, { decision: { seq, at, approved, by, ...omitUndefined({ via, input, reason }) } })
  }

  #begin({ toolCallId, name, turn, attempt, input, malformed, seq }: EventOf<'tool_request_ready'>): void {
    this.#stories.set(toolCallId, {
      toolCallId,
      name,
      turn,
      attempt,
      requested: input,
      requestedSeq: seq,
      ...(malformed && { malformed: malformed.text }),
    })
  }

  #add(toolCallId: ToolCallId, more: Partial<CallStory>): void {
    const story = this.#stories.get(toolCallId)
    if (story) this.#stories.set(toolCallId, { ...story, ...more })
  }
}

/** The events that a part of a story is made of, and when the last of them was. */
interface Placed {
  readonly turn: number
  readonly fromSeq: number
  readonly toSeq: number
  /** Milliseconds since 1970 UTC. */
  readonly at: number
}

/** A part of what happened in a run, in order. */
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

/** A model call that failed, with the text and calls that were withdrawn. */
interface FailedAttempt {
  readonly attempt: number
  readonly failure: ModelFailure
  readonly retryAt?: number
  readonly tookMs: number
  /** Text that had streamed, and that no reply holds. */
  readonly withdrawn: string
  readonly withdrawnCalls: readonly CallStory[]
}

type Draft =
  | Exclude<StoryPart, { kind: 'calls' | 'failed' }>
  | (Placed & { readonly kind: 'calls'; readonly ids: readonly ToolCallId[] })
  | (Placed & {
      readonly kind: 'failed'
      readonly event: EventOf<'model_stream_failed'>
      readonly tookMs: number
    })

/** What a run did, part by part. */
export interface RunStory {
  readonly parts: readonly StoryPart[]
  readonly calls: readonly CallStory[]
}

/** Puts the story of a run together from its events, in order. */
export class StoryBuilder {
  readonly #calls = new CallStories()
  readonly #drafts: Draft[] = []
  #called: EventOf<'model_call_started'> | undefined

  follow(event: RuntimeEvent): void {
    this.#calls.follow(event)
    const { seq, turn, at } = event
    const here = { turn, fromSeq: seq, toSeq: seq, at }
    if (event.type === 'model_call_started') this.#called = event
    if (event.type === 'input_received') this.#drafts.push({ ...here, kind: 'input', event })
    if (event.type === 'history_carried') {
      this.#drafts.push({ ...here, kind: 'history', messages: event.messages.length })
    }
    if (event.type === 'assistant_message_finished') {
      this.#drafts.push({ ...here, ...this.#sinceCall(event), kind: 'reply', event })
    }
    if (event.type === 'model_stream_failed') {
      this.#drafts.push({ ...here, ...this.#sinceCall(event), kind: 'failed', event })
    }
    if (event.type === 'tool_requests_collected') {
      this.#drafts.push({ ...here, kind: 'calls', ids: event.calls.map(({ toolCallId }) => toolCallId) })
    }
    if (noteTypes.has(event.type)) this.#drafts.push({ ...here, kind: 'note', event })
  }

  /** The story so far. What a failed attempt had said is read from the ledger only now. */
  async end(ledger: Ledger, runId: RunId): Promise<RunStory> {
    const parts: StoryPart[] = []
    for (const draft of this.#drafts) {
      if (draft.kind === 'failed') parts.push(await this.#failed(draft, ledger, runId))
      else if (draft.kind === 'calls') parts.push(this.#withCalls(draft))
      else parts.push(draft)
    }
    return { parts, calls: this.#calls.all }
  }

  #sinceCall({ seq, at }: RuntimeEvent): Pick<Placed, 'fromSeq'> & { readonly tookMs: number } {
    const { seq: fromSeq = seq, at: startedAt = at } = this.#called ?? {}
    return { fromSeq, tookMs: at - startedAt }
  }

  #withCalls({ ids, ...draft }: Draft & { readonly kind: 'calls' }): StoryPart {
    const calls = ids.flatMap((id) => this.#calls.of(id) ?? [])
    const toSeq = Math.max(draft.toSeq, ...calls.map(({ resultSeq = 0 }) => resultSeq))
    return { ...draft, toSeq, calls }
  }

  async #failed(
    { event, ...draft }: Draft & { readonly kind: 'failed' },
    ledger: Ledger,
    runId: RunId,
  ): Promise<StoryPart> {
    const { turn, attempt, failure, retryAt } = event
    const isKept = this.#drafts.some(
      (other) => other.kind === 'reply' && other.turn === turn && other.event.attempt === attempt,
    )
    const withdrawnCalls = isKept
      ? []
      : this.#calls.all.filter((call) => call.turn === turn && call.attempt === attempt)
    return {
      ...draft,
      attempt,
      failure,
      withdrawnCalls,
      ...(retryAt !== undefined && { retryAt }),
      withdrawn: isKept ? '' : await attemptText(ledger, { runId, turn, attempt }),
    }
  }
}

/** What an attempt had said, by its deltas. */
async function attemptText(
  ledger: Ledger,
  { runId, turn, attempt }: { readonly runId: RunId; readonly turn: number; readonly attempt: number },
): Promise<string> {
  let text = ''
  for await (const event of ledger.find({ runId, turn, types: ['assistant_text_delta'] })) {
    if (event.type === 'assistant_text_delta' && event.attempt === attempt) text += event.text
  }
  return text
}

/** Events that have a part of the story of their own; those of calls and replies belong to the parts of these. */
const noteTypes: ReadonlySet<EventType> = new Set<EventType>([
  ...(['run_resumed', 'run_finished', 'history_edited', 'input_settled', 'tool_deferred'] as const),
  ...(['compaction_started', 'context_compacted', 'agent_handed_off', 'guardrail_tripped'] as const),
  ...(['output_checked', 'limit_reached', 'limit_raised', 'cancel_requested'] as const),
])

/** The types of events that a story is made of. */
export const storyTypes: readonly EventType[] = [
  ...noteTypes,
  ...(['input_received', 'history_carried', 'model_call_started', 'assistant_message_finished'] as const),
  ...(['model_stream_failed', 'tool_requests_collected', 'tool_request_ready'] as const),
  ...(['approval_decided', 'tool_started', 'tool_result'] as const),
]

const maxValues = 5
const maxKeys = 3
const maxNameCharacters = 60
const maxValueCharacters = 30
const maxResultCharacters = 40

/** A call that has ended. */
interface EndedCall extends CallStory {
  readonly outcome: Outcome
  readonly content: readonly ResultPart[]
}

/** What calls of one tool came to, on one line: `search_orders × 20; all empty; query: "a", "b", … 15 more`. */
export function similarText(calls: readonly CallStory[]): string {
  return calls.length === 0 ? '' : outlineText(outlineOf(calls))
}

/** The same, of the outline of a tool. */
export function outlineText(outline: ToolOutline): string {
  const tool = oneLine(outline.name, maxNameCharacters)
  const name = outline.calls === 1 ? tool : `${tool} × ${outline.calls}`
  return [name, ...[endingsText(outline), varyingText(outline)].filter((text) => text !== '')].join('; ')
}

/** Whether two calls ended alike: of one tool, with one outcome and one result. */
export function endedAlike(one: CallStory, other: CallStory): boolean {
  return (
    one.name === other.name &&
    one.outcome !== undefined &&
    one.outcome === other.outcome &&
    contentText(one.content ?? []) === contentText(other.content ?? [])
  )
}

/** Of calls of one tool, what a run's outline says of all of them. */
function outlineOf(calls: readonly CallStory[]): ToolOutline {
  const ended = calls.filter((call): call is EndedCall => call.outcome !== undefined)
  const inputs = calls.map(({ requested }) => requested)
  const keys = [...new Set(inputs.flatMap((input) => Object.keys(input)))]
  return {
    name: calls[0]?.name ?? '',
    calls: calls.length,
    endings: [...Map.groupBy(ended, endingOf)].map(([ending, { length }]) => ({ ending, count: length })),
    inputs: keys.map((key) => ({ key, values: inputs.map((input) => valueOf(input, key)) })),
  }
}

function endingsText({ calls, endings }: ToolOutline): string {
  const groups = endings.map(({ ending, count }) =>
    count === calls ? (count === 1 ? ending : `all ${ending}`) : `${count} ${ending}`,
  )
  const open = endings.reduce((left, { count }) => left - count, calls)
  return [...groups, ...(open > 0 ? [`${open} open`] : [])].join(', ')
}

/** An empty result says more than that it was a success. */
function endingOf({ outcome, content }: EndedCall): CallEnding['ending'] {
  const text = contentText(content).trim()
  if (outcome === 'success' && ['', '[]', '{}', 'null', '""'].includes(text)) return 'empty'
  return outcome
}

/** The arguments that are not the same in all calls, with their values. */
function varyingText({ calls, inputs }: ToolOutline): string {
  if (calls < 2) return ''
  const varying = inputs.flatMap(({ key, values }) => {
    const texts = [...new Set(values.map(valueText))]
    if (texts.length < 2) return []
    const more = texts.length - maxValues
    const count = texts.length > maxOutlinedValues ? `at least ${more}` : `${more}`
    return [
      `${oneLine(key, maxNameCharacters)}: ${texts.slice(0, maxValues).join(', ')}${more > 0 ? `, … ${count} more` : ''}`,
    ]
  })
  if (varying.length === 0) return 'always with the same input'
  const left = varying.length - maxKeys
  return [...varying.slice(0, maxKeys), ...(left > 0 ? [`${left} more differ`] : [])].join('; ')
}

function valueOf(input: JsonObject, key: string): string | null {
  const value = getOwn(input, key)
  return value === undefined ? null : canonicalJson(value)
}

function valueText(value: string | null): string {
  return value === null ? 'nothing' : oneLine(value, maxValueCharacters)
}

/** Calls that ended alike, with what they ended with. */
export function alikeText(calls: readonly CallStory[]): string {
  const result = oneLine(contentText(calls[0]?.content ?? []), maxResultCharacters)
  return `${similarText(calls)}\nresult each time: ${result === '' ? 'nothing' : result}`
}
