import {
  ConfigurationError,
  type Ledger,
  type Message,
  type ModelRequest,
  type RunId,
  RunNotFoundError,
  type RunState,
  type RuntimeEvent,
  type Usage,
} from '@tallystick/core'
import {
  estimateDefinitionTokens,
  readMessages,
  estimateMessageTokens,
  omitUndefined,
  requireLedger,
  type StreamingState,
  toBackgroundInputId,
} from '@tallystick/core/internal'
import { evolve, toModelRequest } from '@tallystick/core/machine'
import { requireTextId } from '@tallystick/core/store-kit'
import {
  type AgentDefinition,
  toCanonicalJson,
  computeCost,
  type EventOf,
  type EventType,
  type FailureClass,
  type ModelRef,
  type RequestAddition,
  type ToolChoice,
} from '@tallystick/core/vocabulary'

/** The attempts of a turn's model call, as the turn's events tell of them. */
function explainAttempts(ofTurn: readonly RuntimeEvent[]): readonly ExplainedAttempt[] {
  const attempts: ExplainedAttempt[] = []
  for (const event of ofTurn) {
    if (event.type === 'model_call_started') {
      const { attempt, seq, model } = event
      attempts.push({ attempt, seq, model, outcome: 'under_way' })
      continue
    }
    const last = attempts.at(-1)
    if (last === undefined) continue
    const place = attempts.length - 1
    if (event.type === 'model_stream_failed') {
      attempts[place] = { ...last, outcome: 'failed', failure: event.failure.class }
    }
    if (event.type === 'assistant_message_finished') {
      attempts[place] = { ...last, outcome: event.partial ? 'cut_off' : 'answered' }
    }
    if (event.type === 'usage_updated') {
      const { usage, costUsd } = event
      attempts[place] = { ...last, usage, ...omitUndefined({ costUsd }) }
    }
  }
  return attempts
}

/**
 * Follows where the messages of a history come from, event by event. It compares the history before and after an
 * event instead of knowing what each event does: what stays keeps its origin, what is new comes from the event.
 */
class HistoryOrigins {
  #origins: readonly MessageOrigin[] = []
  readonly #dropped: MessageOrigin[] = []
  /** Events of the attempt that streams, of the results that come in, of a summary, and of inputs that wait. */
  #reply: number[] = []
  #results: number[] = []
  #summary: number[] = []
  readonly #inputs = new Map<string, number>()

  /** Of each message of the history, in its order. */
  get origins(): readonly MessageOrigin[] {
    return this.#origins
  }

  /** Messages that left the history, with nothing in their place. */
  get dropped(): readonly MessageOrigin[] {
    return [...this.#dropped]
  }

  /** Takes an event in; `messages` is the history after it, `undefined` if the event did not change it. */
  follow(event: RuntimeEvent, messages: readonly Message[] | undefined): void {
    this.#note(event)
    if (messages === undefined) return
    const seqs = [...this.#listSources(event), event.seq]
    const { origins, dropped } = listOriginsAfter(this.#origins, messages, { event, seqs })
    this.#origins = origins
    for (const origin of dropped) this.#dropped.push(origin)
  }

  #note(event: RuntimeEvent): void {
    const { seq, type } = event
    if (type === 'model_call_started') [this.#reply, this.#results] = [[], []]
    if (replyTypes.has(type)) this.#reply.push(seq)
    if (type === 'tool_result') this.#results.push(seq)
    if (type === 'guardrail_tripped' && event.on === 'tool_output' && event.action !== 'record') {
      this.#results.push(seq)
    }
    if (type === 'compaction_started') this.#summary = [seq]
    if (type === 'input_received') this.#inputs.set(event.receipt ?? '', seq)
    if (type === 'background_ended') this.#inputs.set(toBackgroundInputId(event.toolCallId), seq)
  }

  /** Earlier events from which the messages of an event come. */
  #listSources(event: RuntimeEvent): readonly number[] {
    if (event.type === 'assistant_message_finished') return this.#reply
    if (event.type === 'tool_results_injected') return this.#results
    if (event.type === 'input_settled') {
      const received = this.#inputs.get(event.receipt)
      return received === undefined ? [] : [received]
    }
    return event.type === 'context_compacted' ? this.#summary.splice(0) : []
  }
}

/** Events that a reply is put together from. */
const replyTypes: ReadonlySet<EventType> = new Set<EventType>([
  'assistant_text_delta',
  'assistant_reasoning_delta',
  'tool_input_delta',
  'tool_request_ready',
])

/**
 * Returns where messages come from: earlier ones keep their origin, a changed one has its origin and the event, and the
 * rest come from `seqs`; the first of these replaces all that are gone.
 */
function listOriginsAfter(
  before: readonly MessageOrigin[],
  messages: readonly Message[],
  { event, seqs }: { readonly event: RuntimeEvent; readonly seqs: readonly number[] },
): { readonly origins: readonly MessageOrigin[]; readonly dropped: readonly MessageOrigin[] } {
  const { found, lost } = matchAttempt(before, messages, { wordForWord: event.type === 'agent_handed_off' })
  const changedFrom = listOriginsByPlace(before, messages, event)
  const unclaimed = new Set(lost)
  const origins = messages.map((message, index): MessageOrigin => {
    const same = found.get(message)
    if (same) return same
    const changed = changedFrom(index)
    if (changed && unclaimed.delete(changed)) {
      return { ...changed, message, seqs: [...changed.seqs, event.seq] }
    }
    const replaced = event.type === 'history_edited' ? [] : [...unclaimed]
    for (const origin of replaced) unclaimed.delete(origin)
    return { message, seqs, replaced }
  })
  return { origins, dropped: [...unclaimed] }
}

/**
 * Messages that were there before, and earlier ones that are gone. If messages were recorded again, as in a handoff, equal
 * ones are the same.
 */
function matchAttempt(
  before: readonly MessageOrigin[],
  messages: readonly Message[],
  { wordForWord }: { readonly wordForWord: boolean },
): {
  readonly found: ReadonlyMap<Message, MessageOrigin>
  readonly lost: readonly MessageOrigin[]
} {
  const found = new Map<Message, MessageOrigin>()
  const left = new Map(before.map((origin) => [origin.message, origin]))
  for (const message of messages) {
    const same = left.get(message)
    if (same) found.set(message, same)
    left.delete(message)
  }
  const byText = Map.groupBy(wordForWord ? left.values() : [], ({ message }) => toCanonicalJson(message))
  for (const message of byText.size > 0 ? messages : []) {
    if (found.has(message)) continue
    const same = byText.get(toCanonicalJson(message))?.shift()
    if (same === undefined) continue
    found.set(message, { ...same, message })
    left.delete(same.message)
  }
  return { found, lost: [...left.values()] }
}

/** For each new message, by its place: the earlier one that was changed into it, or `undefined`. */
function listOriginsByPlace(
  before: readonly MessageOrigin[],
  messages: readonly Message[],
  event: RuntimeEvent,
): (index: number) => MessageOrigin | undefined {
  if (event.type === 'guardrail_tripped' && before.length === messages.length) return (index) => before[index]
  if (event.type !== 'history_edited') return () => undefined
  const removed = new Set(event.edits.flatMap((edit) => (edit.message ? [] : [edit.index])))
  const kept = before.filter((_origin, index) => !removed.has(index))
  return (index) => kept[index]
}

/** An attempt right after its `model_call_started`. */
interface Asked {
  readonly started: EventOf<'model_call_started'>
  readonly state: StreamingState
  readonly history: readonly MessageOrigin[]
  /** Messages that left the history without a replacement. */
  readonly dropped: readonly MessageOrigin[]
  /** The event that says the definition in force. */
  readonly definitionSeq: number
}

/**
 * Explains the model's request of a turn. For the instructions, the tools and each message it returns the events that
 * made it, what a summary replaced, and its tokens (estimated) and cost in US dollars (its share of the recorded cost
 * of the input). Rejects with `RunNotFoundError` for an unknown run, and with `ConfigurationError` for a turn that the
 * run did not have.
 */
export async function explain(ledger: Ledger, runId: RunId, turn: number): Promise<Explanation> {
  requireLedger('explain', ledger)
  requireTextId('explain', runId)
  if ((await ledger.head(runId)) === undefined) throw new RunNotFoundError(runId)
  const origins = new HistoryOrigins()
  const ofTurn: RuntimeEvent[] = []
  let state: RunState | undefined
  let asked: Asked | undefined
  let definitionSeq = 1
  for await (const event of ledger.read(runId)) {
    if (event.turn > turn) break
    const before = state
    state = evolve(state, event)
    if (state.definition !== before?.definition) definitionSeq = event.seq
    origins.follow(event, state.history === before?.history ? undefined : readMessages(state.history))
    if (event.turn !== turn) continue
    ofTurn.push(event)
    if (event.type === 'model_call_started' && state.phase === 'streaming') {
      asked = { started: event, state, history: origins.origins, dropped: origins.dropped, definitionSeq }
    }
  }
  if (asked) return buildExplanation(asked, ofTurn)
  throw new ConfigurationError(
    `Run ${runId} has no turn ${turn} in which a model was asked, so there is no request to explain. Turns count from 1; ` +
      'the state of the run says how many there were.',
  )
}

function buildExplanation({ started, state, ...from }: Asked, ofTurn: readonly RuntimeEvent[]): Explanation {
  const { runId, agent, definition, attempt } = state
  const request = toModelRequest(state)
  const { found, lost } = matchAttempt(from.history, request.messages, { wordForWord: true })
  const messages = request.messages.map(
    (message): MessageOrigin => found.get(message) ?? { message, seqs: [started.seq], replaced: [] },
  )
  const items = [
    ...explainItems(definition, request, { started, definitionSeq: from.definitionSeq }),
    ...messages.map((origin, index): ExplainedItem => {
      const { role: _role, ...rest } = toReplacedMessage(origin)
      return { kind: 'message', message: origin.message, index, ...rest }
    }),
  ]
  const estimated = items.reduce((sum, { tokens }) => sum + tokens, 0)
  const attempts = explainAttempts(ofTurn)
  const { usage } = attempts.at(-1) ?? {}
  const inputUsd = computeInputCost(ofTurn, started)
  return {
    runId,
    turn: started.turn,
    agent,
    model: attempt.model,
    requestDigest: started.requestDigest,
    toolChoice: started.toolChoice,
    ...omitUndefined({ additions: started.additions }),
    attempts,
    items: items.map((item) => ({
      ...item,
      ...omitUndefined({
        costUsd: inputUsd === undefined ? undefined : (inputUsd * item.tokens) / estimated,
      }),
    })),
    leftOut: [...from.dropped, ...lost].map(toReplacedMessage),
    tokens: { estimated, ...omitUndefined({ billed: usage?.inputTokens }) },
  }
}

/** Returns the parts of a request apart from the history. */
function explainItems(
  definition: AgentDefinition,
  request: ModelRequest,
  { started, definitionSeq }: Pick<Asked, 'started' | 'definitionSeq'>,
): readonly ExplainedItem[] {
  const { change } = started
  const { instructions, tools, outputSchema } = request
  const none = estimateDefinitionTokens({ ...definition, instructions: '', tools: [] })
  const textTokens = (text: string): number =>
    estimateDefinitionTokens({ ...definition, instructions: text, tools: [] }) - none
  const explained: ExplainedItem[] = [
    {
      kind: 'instructions',
      seqs: change?.instructions === undefined ? [definitionSeq] : [started.seq],
      tokens: textTokens(instructions),
    },
    {
      kind: 'tools',
      seqs: change?.tools === undefined ? [definitionSeq] : [definitionSeq, started.seq],
      tokens: estimateDefinitionTokens({ ...definition, instructions: '', tools }),
    },
  ]
  if (outputSchema === undefined) return explained
  const tokens = textTokens(JSON.stringify(outputSchema))
  return [...explained, { kind: 'output_schema', seqs: [definitionSeq], tokens }]
}

function toReplacedMessage({ message, seqs, replaced }: MessageOrigin): ReplacedMessage {
  return {
    role: message.role,
    seqs,
    tokens: estimateMessageTokens(message),
    ...(replaced.length > 0 && { replaced: replaced.map(toReplacedMessage) }),
  }
}

/** The cost of an attempt's input, at the recorded price. */
function computeInputCost(
  ofTurn: readonly RuntimeEvent[],
  { attempt }: EventOf<'model_call_started'>,
): number | undefined {
  const last = ofTurn.findLast((event) => event.type === 'usage_updated' && event.attempt === attempt)
  if (last?.type !== 'usage_updated' || last.price === undefined) return undefined
  const { outputTokens: _output, reasoningTokens: _reasoning, webSearches: _searches, ...input } = last.usage
  return input.inputTokens === undefined ? undefined : computeCost(last.price, input)
}

/** A message, and the events that made it. */
interface MessageOrigin {
  readonly message: Message
  /** Numbers of the events that its content came from or passed through, ascending. */
  readonly seqs: readonly number[]
  /** Earlier messages of the history that this one replaces: a summary replaces what it sums up. */
  readonly replaced: readonly MessageOrigin[]
}

/** One thing that a request carries. */
export interface ExplainedItem {
  readonly kind: 'instructions' | 'tools' | 'output_schema' | 'message'
  /** The message, if it is one, and its place in the request, from 0. */
  readonly message?: Message
  readonly index?: number
  readonly seqs: readonly number[]
  /** An estimate of its input tokens. */
  readonly tokens: number
  /** Its share of the cost of the input in US dollars, by its tokens; if the cost is known. */
  readonly costUsd?: number
  readonly replaced?: readonly ReplacedMessage[]
}

/** A message that a request does not carry, though the history once held it. */
export interface ReplacedMessage {
  readonly role: Message['role']
  readonly seqs: readonly number[]
  readonly tokens: number
  readonly replaced?: readonly ReplacedMessage[]
}

/** One attempt of a turn's model call. */
export interface ExplainedAttempt {
  readonly attempt: number
  /** Of its `model_call_started`. */
  readonly seq: number
  readonly model: ModelRef
  readonly outcome: 'answered' | 'cut_off' | 'failed' | 'under_way'
  readonly failure?: FailureClass
  /** The provider's counts, and the cost in US dollars, if known. */
  readonly usage?: Usage
  readonly costUsd?: number
}

/** The request of a turn, and where each part of it came from. The request is that of the last attempt. */
export interface Explanation {
  readonly runId: RunId
  readonly turn: number
  readonly agent: string
  readonly model: ModelRef
  readonly requestDigest: string
  readonly toolChoice: ToolChoice
  /** Fields that options of the model's adapter add to the request, or replace in it. Values are not on record. */
  readonly additions?: readonly RequestAddition[]
  readonly attempts: readonly ExplainedAttempt[]
  /** In the order in which a model is given them. */
  readonly items: readonly ExplainedItem[]
  /**
   * Messages that the turn did not show and nothing replaced: `prepareTurn` left them out, an edit removed them, or a
   * handoff left them out.
   */
  readonly leftOut: readonly ReplacedMessage[]
  /** Input tokens of the request: the sum of the estimates of its items, and the provider's count. */
  readonly tokens: { readonly estimated: number; readonly billed?: number }
}
