import type { RuntimeEvent } from '@tallystick/core'
import type { EventOf, EventType } from '@tallystick/core/vocabulary'

/**
 * What a stretch of a lane is:
 * - `model`, `summary`: a model call writes the reply, or sums up older history
 * - `requested`: the model has asked for the call, and its reply goes on
 * - `checked`: the call was checked, or decided about, and has not started
 * - `approval`: a person has to decide
 * - `executed`: an attempt runs
 * - `outside`: the call goes on outside, or in a child run that is suspended
 * - `retry`: an attempt failed, and the next one waits for its time
 * - `nobody`: no process was there
 */
export type SpanKind =
  | 'model'
  | 'summary'
  | 'requested'
  | 'checked'
  | 'approval'
  | 'executed'
  | 'outside'
  | 'retry'
  | 'nobody'

/** A stretch of time in a lane. */
export interface Span {
  readonly kind: SpanKind
  readonly from: number
  /** Absent: it goes on after the last event. */
  readonly to?: number
  /** Of a model call: when the model began to answer. */
  readonly answeredAt?: number
  /** The event that begins it, and the one that ends it. */
  readonly seq: number
  readonly endSeq?: number
  readonly attempt?: number
  /** How it ended, if not well: an outcome, or the class of a failure. */
  readonly failed?: string
}

/** The model's lane, or that of a call. */
export interface Lane {
  readonly id: string
  readonly kind: 'model' | 'call'
  /** The model, or the tool. */
  readonly name: string
  readonly turn: number
  readonly from: number
  readonly spans: readonly Span[]
  /** The most attempts of one call: as many are drawn above each other. */
  readonly attempts: number
  readonly outcome?: string
  readonly toolCallId?: string
  /** The child run that does the work. */
  readonly childRunId?: string
}

/** What a run waits for while nothing of it is at work. `fork`: the time between the source's events and the fork's own. */
export type WaitKind = 'people' | 'outside' | 'time' | 'nobody' | 'fork'

export interface Wait {
  readonly kind: WaitKind
  readonly from: number
  readonly to?: number
  readonly seq: number
  readonly endSeq?: number
}

/** Something that has a time and no length. */
export interface Mark {
  readonly kind: 'take_over' | 'input' | 'handoff' | 'limit' | 'guardrail' | 'cancel' | 'end'
  readonly at: number
  readonly seq: number
  readonly text: string
}

/** A run over time. Times never go back, though clocks may have. */
export interface Timeline {
  readonly from: number
  readonly to: number
  readonly isEnded: boolean
  readonly lanes: readonly Lane[]
  readonly waits: readonly Wait[]
  readonly marks: readonly Mark[]
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** A lane while its events come. */
interface OpenLane extends Omit<Mutable<Lane>, 'spans'> {
  readonly spans: Mutable<Span>[]
}

/** A call without its result. */
interface OpenCall {
  readonly lane: OpenLane
  retryAt?: number
  /** It may not start before its time, since it is a poll. */
  isPoll?: boolean
}

/** A wait for its time is over within this time, if a process is there. */
const punctualMs = 1_000

/** Makes the timeline of a run of its events, one after the other. */
export class TimelineBuilder {
  readonly #lanes: OpenLane[] = []
  readonly #waits: Mutable<Wait>[] = []
  readonly #marks: Mark[] = []
  readonly #calls = new Map<string, OpenCall>()
  readonly #model: OpenLane = {
    ...{ id: 'model', kind: 'model', name: 'model', turn: 0, from: 0, spans: [], attempts: 1 },
  }
  /** When the next attempt of the model starts. */
  #modelRetryAt: number | undefined
  #isLimitAsked = false
  #isEnded = false
  #from = 0
  #at = 0
  #sharedUpTo = 0

  /** What each event means to the lanes; `null` where it means nothing. */
  readonly #handlers: { readonly [T in EventType]: ((event: EventOf<T>) => void) | null } = {
    run_started: ({ parent }) => {
      this.#from = this.#at
      this.#sharedUpTo = parent?.relation === 'fork' ? parent.seq : 0
    },
    schedule_set: (event) => this.#mark('input', event, event.paused ? 'schedule paused' : 'schedule set'),
    schedule_fired: (event) => this.#mark('input', event, 'schedule fired'),
    history_carried: null,
    session_edited: null,
    history_edited: null,
    run_resumed: (event) => this.#mark('take_over', event, event.why),
    run_finished: (event) => this.#finish(event),
    input_received: (event) => this.#mark('input', event, event.delivery),
    input_settled: null,
    model_call_started: (event) => {
      const { attempt, model } = event
      this.#model.name = model.modelId
      this.#modelRetryAt = undefined
      this.#begin(this.#model, 'model', event, attempt)
    },
    assistant_started: () => {
      const span = this.#findOpen(this.#model)
      if (span) span.answeredAt = this.#at
    },
    assistant_text_delta: null,
    assistant_reasoning_delta: null,
    tool_input_delta: null,
    tool_request_ready: (event) => {
      const lane = this.#openCall(event.toolCallId, event.name, event.turn)
      this.#begin(lane, 'requested', event)
    },
    usage_updated: null,
    assistant_message_finished: (event) =>
      this.#end(this.#model, event, event.partial ? event.stopReason : undefined),
    model_stream_failed: (event) => {
      this.#end(this.#model, event, event.failure.class)
      this.#modelRetryAt = event.retryAt
      // What the failed attempt asked for is asked for again, under other ids.
      for (const { lane } of this.#calls.values()) {
        this.#end(lane, event, 'superseded')
        lane.outcome = 'superseded'
      }
      this.#calls.clear()
    },
    tool_requests_collected: (event) => {
      for (const { toolCallId, name, repeats } of event.calls) {
        const lane = this.#openCall(toolCallId, name, event.turn)
        this.#begin(lane, 'checked', event)
        this.#calls.get(toolCallId)!.isPoll = typeof repeats === 'object'
      }
    },
    approval_requested: (event) => this.#beginCall(event, 'approval', event.name),
    approval_added: null,
    approval_applied: (event) => this.#beginCall(event, 'checked'),
    approval_withdrawn: null,
    approval_decided: (event) => {
      const lane = this.#beginCall(event, 'checked')
      if (!event.approved && lane) lane.outcome = 'denied'
    },
    tool_started: (event) => {
      const lane = this.#beginCall(event, 'executed', event.name, event.attempt)
      if (lane && event.child !== undefined) lane.childRunId = event.child
    },
    tool_progress: null,
    tool_deferred: (event) => this.#beginCall(event, 'outside', undefined, event.attempt),
    tool_attempt_failed: (event) => {
      const lane = this.#openCall(event.toolCallId, event.name, event.turn)
      this.#end(lane, event, event.outcome)
      this.#begin(lane, 'retry', event)
      this.#calls.get(event.toolCallId)!.retryAt = event.retryAt
    },
    tool_result: (event) => {
      const lane = this.#openCall(event.toolCallId, event.name, event.turn)
      const isGood = event.outcome === 'success'
      this.#end(lane, event, isGood ? undefined : event.outcome)
      lane.outcome = event.outcome
      this.#calls.delete(event.toolCallId)
    },
    background_ended: (event) => this.#mark('input', event, `${event.name} ended in the background`),
    tool_results_injected: null,
    compaction_started: (event) => this.#begin(this.#model, 'summary', event),
    context_compacted: (event) => this.#end(this.#model, event, event.failure?.class),
    agent_handed_off: (event) => this.#mark('handoff', event, `${event.from} to ${event.to}`),
    guardrail_tripped: (event) => this.#mark('guardrail', event, `${event.guardrail} on ${event.on}`),
    guardrails_checked: null,
    output_checked: null,
    limit_reached: (event) => {
      this.#isLimitAsked = event.policy === 'ask'
      this.#mark('limit', event, event.limit)
    },
    limit_raised: () => {
      this.#isLimitAsked = false
    },
    cancel_requested: (event) => this.#mark('cancel', event, event.reason ?? ''),
    feedback_given: null,
  }

  add(event: RuntimeEvent): void {
    if (this.#sharedUpTo > 0 && event.seq === this.#sharedUpTo + 1) this.#leaveSource(event)
    if (event.type === 'run_resumed') this.#leaveNobody(event)
    // What is said of a run later makes it no longer.
    if (!this.#isEnded) this.#at = this.#readTime(event)
    // A newer release may have recorded a type that this one does not know.
    const handle = this.#handlers[event.type] as ((event: RuntimeEvent) => void) | null | undefined
    handle?.(event)
    this.#noteWait(event)
  }

  /** The timeline up to the last event that was added. */
  build(): Timeline {
    const lanes = this.#model.spans.length > 0 ? [this.#model, ...this.#lanes] : this.#lanes
    return {
      ...{ from: this.#from, to: this.#at, isEnded: this.#isEnded },
      ...{ lanes, waits: this.#waits, marks: this.#marks },
    }
  }

  #readTime({ at }: RuntimeEvent): number {
    return Number.isFinite(at) ? Math.max(this.#at, at) : this.#at
  }

  #openCall(id: string, name: string, turn: number): OpenLane {
    const known = this.#calls.get(id)
    if (known) return known.lane
    const lane: OpenLane = {
      ...{ id, kind: 'call', toolCallId: id, name, turn, from: this.#at, spans: [], attempts: 1 },
    }
    this.#lanes.push(lane)
    this.#calls.set(id, { lane })
    return lane
  }

  #beginCall(
    event: RuntimeEvent & { readonly toolCallId: string },
    kind: SpanKind,
    name?: string,
    attempt?: number,
  ): OpenLane | undefined {
    const lane =
      name === undefined
        ? this.#calls.get(event.toolCallId)?.lane
        : this.#openCall(event.toolCallId, name, event.turn)
    if (lane) this.#begin(lane, kind, event, attempt)
    return lane
  }

  #findOpen({ spans }: OpenLane): Mutable<Span> | undefined {
    const last = spans.at(-1)
    return last?.to === undefined ? last : undefined
  }

  #begin(lane: OpenLane, kind: SpanKind, event: RuntimeEvent, attempt?: number): void {
    this.#end(lane, event)
    const seq = event.seq
    lane.spans.push({ kind, from: this.#at, seq, ...(attempt !== undefined && { attempt }) })
    if (attempt !== undefined) lane.attempts = Math.max(lane.attempts, attempt)
  }

  #end(lane: OpenLane, event: { readonly seq: number }, failed?: string): void {
    const span = this.#findOpen(lane)
    if (span === undefined) return
    span.to = this.#at
    span.endSeq = event.seq
    if (failed !== undefined) span.failed = failed
  }

  #mark(kind: Mark['kind'], { seq }: RuntimeEvent, text: string): void {
    this.#marks.push({ kind, at: this.#at, seq, text })
  }

  #finish(event: EventOf<'run_finished'>): void {
    for (const lane of [this.#model, ...this.#lanes]) this.#end(lane, event)
    this.#calls.clear()
    this.#modelRetryAt = undefined
    this.#isLimitAsked = false
    this.#isEnded = true
    this.#mark('end', event, event.reason)
  }

  /** A process took the run over: what was at work before ends at the last event of the one that is gone. */
  #leaveNobody(event: RuntimeEvent): void {
    const now = this.#readTime(event)
    const lost = this.#findLoss(now)
    if (lost === undefined) return
    const before = { seq: event.seq - 1 }
    const gap = { kind: 'nobody', from: lost, to: now, seq: before.seq, endSeq: event.seq } as const
    this.#at = lost
    for (const lane of [this.#model, ...[...this.#calls.values()].map((call) => call.lane)]) {
      const span = this.#findOpen(lane)
      if (span === undefined || span.kind === 'approval' || span.kind === 'outside') continue
      const isAtWork = span.kind === 'model' || span.kind === 'summary' || span.kind === 'executed'
      this.#end(lane, before, isAtWork ? 'interrupted' : undefined)
      if (now > lost) lane.spans.push(gap)
    }
    this.#endWait(before)
    if (now > lost) this.#waits.push(gap)
  }

  /** Since when no process was there; `undefined` if the run waited for something else all the time. */
  #findLoss(now: number): number | undefined {
    const wait = this.#describeWait()
    if (wait === 'people' || wait === 'outside') return undefined
    if (wait === undefined) return this.#at
    const due = this.#findDue()
    return due !== undefined && now > due + punctualMs ? Math.max(this.#at, due) : undefined
  }

  /** A fork begins after the events that it shares with its source, and has waited for nothing in between. */
  #leaveSource(event: RuntimeEvent): void {
    const before = { seq: event.seq - 1 }
    this.#endWait(before)
    for (const lane of [this.#model, ...this.#lanes]) this.#end(lane, before)
    const to = this.#readTime(event)
    if (to > this.#at)
      this.#waits.push({ kind: 'fork', from: this.#at, to, seq: before.seq, endSeq: event.seq })
  }

  #endWait({ seq }: { readonly seq: number }): void {
    const wait = this.#waits.at(-1)
    if (wait === undefined || wait.to !== undefined) return
    wait.to = this.#at
    wait.endSeq = seq
    // What took no time was no wait.
    if (wait.to === wait.from) this.#waits.pop()
  }

  #noteWait(event: RuntimeEvent): void {
    const kind = this.#describeWait()
    const open = this.#waits.at(-1)
    if (open !== undefined && open.to === undefined && open.kind === kind) return
    this.#endWait(event)
    if (kind !== undefined) this.#waits.push({ kind, from: this.#at, seq: event.seq })
  }

  /** What the run waits for; `undefined` while something of it is at work. */
  #describeWait(): WaitKind | undefined {
    if (this.#isEnded || this.#findOpen(this.#model)) return undefined
    let isAsked = this.#isLimitAsked
    let isOutside = false
    let isTimed = this.#modelRetryAt !== undefined
    for (const { lane, isPoll } of this.#calls.values()) {
      const kind = this.#findOpen(lane)?.kind
      if (kind === 'approval') isAsked = true
      else if (kind === 'outside') isOutside = true
      else if (kind === 'retry' || (kind === 'checked' && isPoll)) isTimed = true
      else if (kind !== undefined) return undefined
    }
    if (isAsked) return 'people'
    if (isOutside) return 'outside'
    return isTimed ? 'time' : undefined
  }

  /** When the first of what waits for its time may go on. */
  #findDue(): number | undefined {
    const times = [...this.#calls.values()].flatMap(({ retryAt }) => retryAt ?? [])
    if (this.#modelRetryAt !== undefined) times.push(this.#modelRetryAt)
    return times.length > 0 ? Math.min(...times) : undefined
  }
}
