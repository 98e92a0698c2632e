import type { RuntimeEvent, Usage } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import {
  addUsage,
  type AgentDefinition,
  type EventOf,
  type EventType,
  type FinishReason,
  type ModelFailure,
} from '@tallystick/core/vocabulary'
import { finishReason, genAi, operations, own, toProviderName } from './conventions.ts'
import {
  type Attributes,
  toCallSpanId,
  toCostAttributes,
  type Lineage,
  findLineage,
  type MaybeAttributes,
  nameText,
  type NewSpan,
  OpenSpan,
  toRunSpanId,
  type RunStarts,
  type Span,
  type SpanError,
  toSpanId,
  type SpanLink,
  type SpanMove,
  type StartedSpan,
  toUsageAttributes,
} from './span.ts'
import { RunContent } from './content.ts'

/** The recorded use of one attempt. Numbers are totals, so a later report replaces an earlier one. */
interface AttemptUse {
  readonly usage: Usage
  readonly costUsd?: number
}

/** One call of a model, with all its attempts. Attempts of another model are another call. */
class ChatSpan {
  readonly turn: number
  readonly model: string
  readonly span: OpenSpan
  readonly #uses = new Map<number, AttemptUse>()
  #attemptStartedAt = 0
  #attempts = 0
  #failedAt: number | undefined
  #failure: ModelFailure | undefined

  constructor(event: EventOf<'model_call_started'>, span: OpenSpan) {
    this.turn = event.turn
    this.model = toModelKey(event)
    this.span = span
    this.addAttempt(event)
  }

  continuesWith(event: EventOf<'model_call_started'>): boolean {
    return event.turn === this.turn && toModelKey(event) === this.model
  }

  addAttempt({ at, maxOutputTokens }: EventOf<'model_call_started'>): void {
    this.#attempts++
    this.#attemptStartedAt = at
    this.#failure = undefined
    this.#failedAt = undefined
    this.span.set({ [genAi.maxTokens]: maxOutputTokens, [own.attempts]: this.#attempts })
  }

  begin({ at, providerMessageId, servedModel }: EventOf<'assistant_started'>): void {
    this.span.set({
      [genAi.timeToFirstChunk]: (at - this.#attemptStartedAt) / 1000,
      [genAi.responseId]: nameText(providerMessageId),
      [genAi.responseModel]: nameText(servedModel),
    })
  }

  use({ attempt, usage, costUsd }: EventOf<'usage_updated'>): void {
    this.#uses.set(attempt, { usage, ...(costUsd !== undefined && { costUsd }) })
  }

  fail({ at, attempt, failure }: EventOf<'model_stream_failed'>): void {
    this.#failure = failure
    this.#failedAt = at
    this.span.addEvent(at, 'tallystick.attempt_failed', {
      [own.attempt]: attempt,
      [genAi.errorType]: failure.class,
    })
  }

  /** Ends it with its whole reply. */
  finish(event: EventOf<'assistant_message_finished'>): Span {
    const { at, stopReason, partial, providerMessageId } = event
    this.span.set({
      [genAi.finishReasons]: [finishReason(stopReason)],
      [genAi.responseId]: nameText(providerMessageId),
    })
    return this.#end(at, partial ? { type: stopReason } : undefined)
  }

  /** Ends it without a reply: at its last failure, or at an event after which none can come. */
  giveUp(at: number): Span {
    const failure = this.#failure
    return this.#end(this.#failedAt ?? at, failure ? { type: failure.class } : { type: 'cancelled' })
  }

  #end(at: number, error: SpanError | undefined): Span {
    const uses = [...this.#uses.values()]
    this.span.set(toUsageAttributes(uses.reduce<Usage>((sum, { usage }) => addUsage(sum, usage), {})))
    const costs = uses.flatMap(({ costUsd }) => costUsd ?? [])
    this.span.set(toCostAttributes(costs.length > 0 ? costs.reduce((sum, cost) => sum + cost, 0) : undefined))
    return this.span.end(at, error)
  }
}

function toModelKey({ model }: EventOf<'model_call_started'>): string {
  return JSON.stringify([model.provider, model.api, model.modelId])
}

/** How a model was asked to write: each setting of the run wins over the agent's. */
function toRequestAttributes(
  { modelSettings: ofRun }: EventOf<'run_started'>,
  { modelSettings: ofAgent, output }: AgentDefinition,
): MaybeAttributes {
  const { temperature, topP, seed, stop, reasoningEffort } = { ...ofAgent, ...ofRun }
  return {
    [genAi.temperature]: temperature,
    [genAi.topP]: topP,
    [genAi.seed]: seed,
    [genAi.stopSequences]: stop?.map((text) => nameText(text)),
    [genAi.reasoningLevel]: reasoningEffort,
    [genAi.outputType]: output ? 'json' : undefined,
  }
}

/** The use of a run, child runs included; the number of model calls is that of the run alone. */
function finishAttributes(
  { reason, turns, toolCalls, usage, costUsd }: EventOf<'run_finished'>,
  modelCalls: number,
): MaybeAttributes {
  return {
    [genAi.inputTokens]: usage.inputTokens,
    [genAi.outputTokens]: usage.outputTokens,
    ...toCostAttributes(costUsd),
    [own.finishReason]: reason,
    [own.turns]: turns,
    [own.toolCalls]: toolCalls,
    [own.modelCalls]: modelCalls,
  }
}

/** The endings of a run that are not errors. */
const endedWell: ReadonlySet<FinishReason> = new Set(['answered', 'handed_back', 'stopped', 'cancelled'])

/** A call of a model that sums up older history. */
class SummarySpan {
  readonly span: OpenSpan
  #usage: Usage = {}
  #costUsd: number | undefined

  constructor(span: OpenSpan) {
    this.span = span
  }

  /** The process before this one stopped while it waited for the summary, and it is asked for again. */
  restart({ at, interrupted }: EventOf<'compaction_started'>): void {
    this.#spend(interrupted?.usage, interrupted?.costUsd)
    this.span.addEvent(at, 'tallystick.attempt_failed', { [genAi.errorType]: 'interrupted' })
  }

  finish({ at, usage, costUsd, failure, abandoned }: EventOf<'context_compacted'>): Span {
    this.#spend(usage, costUsd)
    const type = failure?.class ?? (abandoned ? 'abandoned' : undefined)
    return this.#end(at, type === undefined ? undefined : { type })
  }

  /** Ends it without its summary. */
  giveUp(at: number): Span {
    return this.#end(at, { type: 'cancelled' })
  }

  #end(at: number, error: SpanError | undefined): Span {
    this.span.set({ ...toUsageAttributes(this.#usage), ...toCostAttributes(this.#costUsd) })
    return this.span.end(at, error)
  }

  #spend(usage: Usage = {}, costUsd?: number): void {
    this.#usage = addUsage(this.#usage, usage)
    if (costUsd !== undefined) this.#costUsd = (this.#costUsd ?? 0) + costUsd
  }
}

/**
 * Folds the events of one run, from the first, and tells what each means to its trace. The same events give the same spans
 * under the same ids, in any process and at any time. A span is ended by the event after which it is known whole; what is
 * open after the last event has not ended yet.
 *
 * A fork has the events of its source up to where it begins: they are folded, and mean nothing to its own trace.
 */
export class RunSpans {
  readonly #start: EventOf<'run_started'>
  readonly #lineage: Lineage
  /** The last event that the run shares with the one that it was forked from. */
  readonly #sharedUpTo: number
  readonly #open = new Set<OpenSpan>()
  #moves: SpanMove[] = []
  #agent: string
  #definition: AgentDefinition
  #run: OpenSpan | undefined
  #handedOff: OpenSpan | undefined
  #chat: ChatSpan | undefined
  #summary: SummarySpan | undefined
  #isCompacted = false
  #modelCalls = 0
  #isAnnounced: boolean
  readonly #calls = new Map<string, OpenSpan>()
  readonly #approvals = new Map<string, OpenSpan>()

  /** The effect of each event on the trace. Marks, of events without a span of their own, hold no content. */
  readonly #handlers: { readonly [T in EventType]: ((event: EventOf<T>) => void) | null } = {
    run_started: (event) => this.#startRun(event),
    schedule_set: (event) => this.#mark(event, { [own.action]: event.paused ? 'pause' : 'set' }),
    schedule_fired: (event) => this.#mark(event, { [own.value]: event.scheduledAt }),
    history_carried: null,
    session_edited: null,
    history_edited: null,
    run_resumed: (event) => this.#mark(event, { [own.reason]: event.why, [own.value]: event.epoch }),
    run_finished: (event) => this.#finishRun(event),
    input_received: (event) => this.#mark(event, { [own.action]: event.delivery }),
    input_settled: null,
    model_call_started: (event) => this.#callModel(event),
    assistant_started: (event) => this.#chat?.begin(event),
    assistant_text_delta: null,
    assistant_reasoning_delta: null,
    tool_input_delta: null,
    tool_request_ready: (event) => this.#content?.note(event),
    usage_updated: (event) => this.#chat?.use(event),
    assistant_message_finished: (event) => {
      this.#chat?.span.set(this.#content?.reply(event))
      this.#closeChat((chat) => chat.finish(event))
    },
    model_stream_failed: (event) => this.#chat?.fail(event),
    tool_requests_collected: ({ calls }) => {
      for (const call of calls) this.#content?.note(call)
    },
    approval_requested: (event) => this.#requestApproval(event),
    approval_decided: (event) => this.#decideApproval(event),
    approval_added: null,
    approval_applied: null,
    approval_withdrawn: null,
    tool_started: (event) => this.#startCall(event),
    tool_progress: null,
    tool_deferred: (event) => this.#mark(event, { [own.attempt]: event.attempt }),
    tool_attempt_failed: (event) =>
      this.#mark(event, { [own.attempt]: event.attempt, [genAi.errorType]: event.outcome }),
    tool_result: (event) => this.#endCall(event),
    background_ended: (event) => this.#mark(event, { [own.name]: event.name, [own.value]: event.outcome }),
    tool_results_injected: null,
    compaction_started: (event) => this.#startSummary(event),
    context_compacted: (event) => this.#endSummary(event),
    agent_handed_off: (event) => this.#handOff(event),
    guardrail_tripped: (event) =>
      this.#mark(event, {
        [own.name]: nameText(event.guardrail),
        [own.reason]: event.on,
        [own.action]: event.action,
      }),
    guardrails_checked: null,
    output_checked: (event) => this.#mark(event, { [own.value]: event.valid }),
    limit_reached: (event) =>
      this.#mark(event, { [own.name]: event.limit, [own.value]: event.max, [own.action]: event.policy }),
    limit_raised: (event) => this.#mark(event, { [own.name]: event.limit, [own.value]: event.max }),
    cancel_requested: (event) => this.#mark(event, {}),
    feedback_given: null,
  }

  readonly #content: RunContent | undefined

  constructor(start: EventOf<'run_started'>, starts: RunStarts, withContent: boolean) {
    this.#content = withContent && start.traceContent !== false ? new RunContent() : undefined
    this.#start = start
    this.#lineage = findLineage(start, starts)
    this.#sharedUpTo = start.parent?.relation === 'fork' ? start.parent.seq : 0
    this.#isAnnounced = this.#sharedUpTo === 0
    this.#agent = start.agent
    this.#definition = start.definition
  }

  /** The spans that have begun and not ended. */
  get open(): readonly StartedSpan[] {
    return this.#isAnnounced ? [...this.#open].map(({ started }) => started) : []
  }

  /** Returns the spans that the next event starts or ends. */
  next(event: RuntimeEvent): readonly SpanMove[] {
    this.#moves = []
    if (this.#start.tracing === false) return []
    if (!this.#isAnnounced && event.seq > this.#sharedUpTo) this.#announce(event.at)
    this.#content?.fold(event)
    // A newer release may have recorded a type that this one does not know.
    const handle = this.#handlers[event.type] as ((event: RuntimeEvent) => void) | null | undefined
    handle?.(event)
    return this.#isAnnounced ? this.#moves : []
  }

  /** Begins the spans that are open at the first event of a fork's own. */
  #announce(at: number): void {
    this.#isAnnounced = true
    for (const span of this.#open) {
      span.beginAt(at)
      this.#moves.push({ type: 'started', span: span.started })
    }
  }

  /** Notes what has no span of its own: at its call if it concerns one, else at the active agent. */
  #mark(event: RuntimeEvent, attributes: MaybeAttributes): void {
    const call = event.toolCallId === undefined ? undefined : this.#calls.get(event.toolCallId)
    const span = call ?? this.#handedOff ?? this.#run
    span?.addEvent(event.at, `tallystick.${event.type}`, attributes)
  }

  #startRun({ at, agent, labels, parent, sessionId }: EventOf<'run_started'>): void {
    const { follows, trace } = this.#lineage
    this.#run = this.#begin(
      {
        id: toRunSpanId(this.#start.runId),
        parentId: trace.parentSpanId,
        name: `${operations.agent} ${nameText(agent)}`,
        at,
        attributes: {
          [genAi.operation]: operations.agent,
          [genAi.requestModel]: this.#requestModel,
          [own.relation]: parent?.relation,
          // The names that the application gave the run. Its metadata may say anything, and stays in the ledger.
          [own.workflow]: nameText(labels?.workflowName),
          [own.group]: nameText(labels?.groupId),
          [own.trace]: nameText(labels?.traceId),
          [own.tags]: labels?.tags?.map((tag) => nameText(tag)),
          [genAi.conversation]: nameText(sessionId),
        },
      },
      follows && {
        traceId: follows.traceId,
        spanId: toRunSpanId(follows.runId),
        attributes: { [own.relation]: follows.relation },
      },
    )
  }

  #callModel(event: EventOf<'model_call_started'>): void {
    if (this.#chat?.continuesWith(event)) this.#chat.addAttempt(event)
    else this.#beginChat(event)
    this.#chat?.span.set(this.#content?.request())
  }

  #beginChat(event: EventOf<'model_call_started'>): void {
    this.#closeChat((chat) => chat.giveUp(event.at))
    const id = toSpanId(event.runId, 'chat', event.turn, event.attempt)
    const span = this.#beginModelCall(id, event, {
      ...toRequestAttributes(this.#start, this.#definition),
      [genAi.conversationCompacted]: this.#isCompacted || undefined,
    })
    this.#chat = new ChatSpan(event, span)
  }

  #beginModelCall(
    id: string,
    { at, turn, model }: EventOf<'model_call_started' | 'compaction_started'>,
    attributes: MaybeAttributes,
  ): OpenSpan {
    return this.#begin({
      id,
      parentId: this.#agentSpanId,
      name: `${operations.chat} ${nameText(model.modelId)}`,
      kind: 'client',
      at,
      attributes: {
        [genAi.operation]: operations.chat,
        [genAi.provider]: nameText(toProviderName(model.provider)),
        [genAi.requestModel]: nameText(model.modelId),
        [genAi.stream]: true,
        [own.turn]: turn,
        ...attributes,
      },
    })
  }

  #closeChat(end: (chat: ChatSpan) => Span): void {
    const chat = this.#chat
    if (chat === undefined) return
    this.#chat = undefined
    this.#ended(chat.span, end(chat))
  }

  #startSummary(event: EventOf<'compaction_started'>): void {
    if (this.#summary) return this.#summary.restart(event)
    const span = this.#beginModelCall(toSpanId(event.runId, 'summary', event.seq), event, {
      [own.purpose]: 'compaction',
      [genAi.maxTokens]: event.maxOutputTokens,
    })
    this.#summary = new SummarySpan(span)
  }

  #endSummary(event: EventOf<'context_compacted'>): void {
    this.#isCompacted = true
    const summary = this.#summary
    if (summary === undefined) return this.#mark(event, { [own.value]: event.replacedMessages })
    this.#summary = undefined
    this.#ended(summary.span, summary.finish(event))
  }

  #requestApproval({ at, runId, turn, toolCallId, name, attempt }: EventOf<'approval_requested'>): void {
    // A fork asks again about a call that waits where it begins: that is one wait.
    if (this.#approvals.has(toolCallId)) return
    const span = this.#begin({
      id: toSpanId(runId, 'approval', toolCallId, attempt),
      parentId: this.#agentSpanId,
      name: `approval ${nameText(name)}`,
      at,
      attributes: {
        [genAi.tool]: nameText(name),
        [genAi.toolCallId]: toolCallId,
        [own.attempt]: attempt,
        [own.turn]: turn,
      },
    })
    this.#approvals.set(toolCallId, span)
  }

  #decideApproval(event: EventOf<'approval_decided'>): void {
    const { at, toolCallId, approved } = event
    const decision = this.#content?.decision(event)
    this.#approvals.get(toolCallId)?.set({ ...decision, [own.approved]: approved })
    this.#closeApproval(toolCallId, at)
  }

  #closeApproval(toolCallId: string, at: number): void {
    const span = this.#approvals.get(toolCallId)
    if (span === undefined) return
    this.#approvals.delete(toolCallId)
    this.#end(span, at)
  }

  #startCall(event: EventOf<'tool_started'>): void {
    const { at, toolCallId, attempt, child } = event
    const span = this.#calls.get(toolCallId) ?? this.#beginCall(event, child)
    span.set({ [own.attempts]: attempt })
    if (attempt > 1) span.addEvent(at, 'tallystick.attempt_started', { [own.attempt]: attempt })
  }

  #beginCall(event: EventOf<'tool_started'> | EventOf<'tool_result'>, child?: string): OpenSpan {
    const { at, runId, turn, toolCallId, name } = event
    const span = this.#begin({
      id: toCallSpanId(runId, toolCallId, child),
      parentId: this.#agentSpanId,
      name: `${operations.tool} ${nameText(name)}`,
      at,
      attributes: {
        [genAi.operation]: operations.tool,
        [genAi.tool]: nameText(name),
        [genAi.toolType]: 'function',
        [genAi.toolCallId]: toolCallId,
        [own.turn]: turn,
      },
    })
    this.#calls.set(toolCallId, span)
    return span
  }

  /**
   * A call that was never started has a span of zero duration, too: the model asked for it, and read why it did not
   * run.
   */
  #endCall(event: EventOf<'tool_result'>): void {
    const { at, toolCallId, outcome } = event
    this.#closeApproval(toolCallId, at)
    const result = this.#content?.result(event)
    this.#calls.get(toolCallId)?.set(result)
    const span = this.#calls.get(toolCallId) ?? this.#beginCall(event)
    this.#calls.delete(toolCallId)
    span.set({ [own.outcome]: outcome })
    this.#end(span, at, outcome === 'success' || outcome === 'repeated' ? undefined : { type: outcome })
  }

  #handOff({ at, runId, seq, to, definition, turn }: EventOf<'agent_handed_off'>): void {
    this.#endHandedOff(at)
    this.#agent = to
    this.#definition = definition
    this.#handedOff = this.#begin({
      id: toSpanId(runId, 'agent', seq),
      parentId: this.#run?.spanId,
      name: `${operations.agent} ${nameText(to)}`,
      at,
      attributes: {
        [genAi.operation]: operations.agent,
        [genAi.requestModel]: this.#requestModel,
        [own.turn]: turn,
        [own.relation]: 'handoff',
      },
    })
  }

  #endHandedOff(at: number): void {
    if (this.#handedOff) this.#end(this.#handedOff, at)
    this.#handedOff = undefined
  }

  #finishRun(event: EventOf<'run_finished'>): void {
    const { at } = event
    this.#closeChat((chat) => chat.giveUp(at))
    if (this.#summary) this.#ended(this.#summary.span, this.#summary.giveUp(at))
    for (const toolCallId of this.#approvals.keys()) this.#closeApproval(toolCallId, at)
    this.#endHandedOff(at)
    const run = this.#run
    if (run === undefined) return
    run.set(finishAttributes(event, this.#modelCalls))
    this.#end(run, at, endedWell.has(event.reason) ? undefined : { type: event.reason })
  }

  get #requestModel(): string {
    return nameText((this.#start.givenModel ?? this.#definition).model.modelId)
  }

  get #agentSpanId(): string | undefined {
    return (this.#handedOff ?? this.#run)?.spanId
  }

  #begin({ id, parentId, name, kind, at, attributes }: NewSpan, link?: SpanLink): OpenSpan {
    const { traceId, traceFlags } = this.#lineage.trace
    const started: StartedSpan = {
      traceId,
      traceFlags,
      spanId: id,
      ...omitUndefined({ parentSpanId: parentId }),
      runId: this.#start.runId,
      kind: kind ?? 'internal',
      name,
      startedAt: at,
      attributes: omitUndefined({
        ...attributes,
        [genAi.agent]: nameText(this.#agent),
        [own.runId]: this.#start.runId,
      }) as Attributes,
      links: link ? [link] : [],
    }
    const span = new OpenSpan(started)
    this.#open.add(span)
    this.#moves.push({ type: 'started', span: started })
    return span
  }

  #end(span: OpenSpan, at: number, error?: SpanError): void {
    this.#ended(span, span.end(at, error))
  }

  #ended(open: OpenSpan, span: Span): void {
    this.#open.delete(open)
    if (span.kind === 'client' && this.#isAnnounced) this.#modelCalls++
    this.#moves.push({ type: 'ended', span })
  }
}
