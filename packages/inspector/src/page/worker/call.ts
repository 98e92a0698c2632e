import {
  type Approver,
  type Approvers,
  computeDigest,
  type EventOf,
  type JsonObject,
} from '@tallystick/core/vocabulary'
import type { RuntimeEvent } from '@tallystick/core'
import { formatJson, joinContent } from './content.ts'
import type { RunModel } from './run-model.ts'
import { listStanding, type Standing } from './standing.ts'
import { type CutText, cutText } from './values.ts'

/** A call in the list of all of them. */
export interface CallLine {
  readonly toolCallId: string
  readonly name: string
  readonly turn: number
  readonly seq: number
  readonly outcome?: string
  readonly attempts: number
  readonly durationMs?: number
}

/** The input of a call, as somebody left it. */
export interface CallInput {
  readonly by: 'model' | 'repair' | 'guardrail' | 'person'
  /** The person, the guardrail, or what was repaired. */
  readonly who?: string
  readonly seq: number
  readonly text: CutText
  readonly note?: string
}

/** A question about a call, and its answer. */
export interface CallApproval {
  readonly seq: number
  readonly reason?: string
  readonly expiresAt?: number
  readonly inputDigest: string
  /** Who has to approve, where not anybody may. */
  readonly approvers?: readonly Approvers[]
  /** The approvals before the one that decided. */
  readonly added: readonly (Approver & { readonly seq: number })[]
  readonly decision?: {
    readonly seq: number
    readonly approved: boolean
    readonly by: string
    readonly via?: string
    readonly reason?: string
    readonly roles?: readonly string[]
    readonly isElsewhere: boolean
    /** It answers this very question. */
    readonly isBound: boolean
  }
}

/** A start of a call, and how it ended. */
export interface CallAttempt {
  readonly attempt: number
  readonly seq: number
  readonly endSeq?: number
  readonly outcome?: string
  readonly durationMs?: number
  readonly text?: CutText
  readonly error?: CutText
  readonly retryAt?: number
  readonly progress: number
  readonly deferred?: { readonly seq: number; readonly receipt: string; readonly deadlineAt?: number }
}

/** Everything on record about one call. */
export interface CallFacts extends CallLine {
  readonly malformed?: string
  readonly inputs: readonly CallInput[]
  /** What the check decided: the plan, why, and what the tool may do. */
  readonly policy?: {
    readonly seq: number
    readonly plan: string
    readonly effect?: string
    readonly recovery?: string
    readonly reason?: string
    readonly refusal?: { readonly outcome: string; readonly text: string; readonly error?: CutText }
  }
  readonly guardrails: readonly {
    readonly seq: number
    readonly guardrail: string
    readonly on: string
    readonly action: string
    readonly detail?: string
  }[]
  readonly approvals: readonly CallApproval[]
  /** The standing approvals that were given with it, or let it run without a question. */
  readonly standing: readonly Standing[]
  /** The digest of the input that ran, as recorded, and whether the input here has it. */
  readonly digest?: { readonly recorded: string; readonly is: 'same' | 'other' | 'gone' }
  readonly idempotencyKey?: string
  readonly calls: readonly CallAttempt[]
  readonly result?: {
    readonly seq: number
    readonly outcome: string
    readonly durationMs?: number
    readonly recorded: CutText
    /** What the model reads, where that is not all of it, and why. */
    readonly read?: CutText
    readonly readBecause?: 'projected' | 'shortened'
    readonly error?: CutText
    readonly settledBy?: string
    readonly reused?: string
  }
  readonly child?: {
    readonly runId: string
    readonly turns?: number
    readonly costUsd?: number
    readonly isEstimated?: true
  }
  readonly isRemoved: boolean
}

/** The calls of a run, in the order in which they were asked for. */
export function listCalls(model: RunModel): readonly CallLine[] {
  const calls = new Map<string, CallLine>()
  for (const event of model.events) {
    const { toolCallId } = event
    if (toolCallId === undefined) continue
    if (event.type === 'tool_request_ready') {
      const { name, turn, seq } = event
      calls.set(toolCallId, { toolCallId, name, turn, seq, attempts: 0 })
    }
    const call = calls.get(toolCallId)
    if (call === undefined) continue
    if (event.type === 'tool_started') calls.set(toolCallId, { ...call, attempts: event.attempt })
    if (event.type === 'tool_result') {
      const { outcome, durationMs } = event
      calls.set(toolCallId, { ...call, outcome, ...(durationMs !== undefined && { durationMs }) })
    }
  }
  return [...calls.values()]
}

/** Returns what is on record about a call; `undefined` if the run has none with this id. */
export function describeCallFacts(model: RunModel, toolCallId: string): CallFacts | undefined {
  const line = listCalls(model).find((call) => call.toolCallId === toolCallId)
  if (line === undefined) return undefined
  const own = model.events.filter((event) => event.toolCallId === toolCallId)
  const asked = own.find((event) => event.type === 'tool_request_ready')!
  const collectedEvent = model.events.find(
    (event): event is EventOf<'tool_requests_collected'> =>
      event.type === 'tool_requests_collected' && event.calls.some((call) => call.toolCallId === toolCallId),
  )
  const collected = collectedEvent?.calls.find((call) => call.toolCallId === toolCallId)
  const guardrails = own.filter((event) => event.type === 'guardrail_tripped')
  const replacing = guardrails.find(({ on, action }) => on === 'tool_input' && action === 'replace')
  const decisions = own.filter((event) => event.type === 'approval_decided')
  const started = own.filter((event) => event.type === 'tool_started')
  const result = own.find((event) => event.type === 'tool_result')
  const edit = decisions.findLast(({ input }) => input !== undefined)
  const inputs: CallInput[] = [{ by: 'model', seq: asked.seq, text: toText(asked.input) }]
  if (collected?.input !== undefined && collectedEvent) {
    const by = collected.repairs ? 'repair' : 'guardrail'
    const who = collected.repairs?.join('; ') ?? replacing?.guardrail
    inputs.push({
      by,
      seq: collectedEvent.seq,
      text: toText(collected.input),
      ...(who !== undefined && { who }),
    })
  }
  if (edit?.input !== undefined) {
    const { seq, by, note } = edit
    inputs.push({ by: 'person', who: by, seq, text: toText(edit.input), ...(note !== undefined && { note }) })
  }
  const runs = edit?.input ?? collected?.input ?? asked.input
  const ran = started.at(-1)
  const child = result?.child ?? (ran?.child === undefined ? undefined : { runId: ran.child })
  return {
    ...line,
    ...(asked.malformed && {
      malformed: `${asked.malformed.error}: ${asked.malformed.text}`.slice(0, 4_000),
    }),
    inputs,
    ...(collected && collectedEvent && { policy: describePolicy(collectedEvent.seq, collected) }),
    guardrails: guardrails.map(({ seq, guardrail, on, action, detail }) => ({
      ...{ seq, guardrail, on, action },
      ...(detail !== undefined && { detail }),
    })),
    approvals: own
      .filter((event) => event.type === 'approval_requested')
      .map((question) => describeApproval(question, decisions, own)),
    standing: listStanding(model.events).filter(
      ({ id, applied }) => id === toolCallId || applied.some((call) => call.toolCallId === toolCallId),
    ),
    ...digestOf(runs, ran, own),
    ...(ran && { idempotencyKey: ran.idempotencyKey }),
    calls: started.map((event) => describeAttempt(event, own)),
    ...(result && { result: describeResult(result) }),
    ...(child && {
      child: {
        runId: child.runId,
        ...('turns' in child && { turns: child.turns }),
        ...('costUsd' in child && child.costUsd !== undefined && { costUsd: child.costUsd }),
        ...('estimated' in child && { isEstimated: true as const }),
      },
    }),
    isRemoved: own.some(({ removed }) => removed !== undefined),
  }
}

function toText(input: JsonObject): CutText {
  return cutText(formatJson(input), 20_000)
}

function describePolicy(
  seq: number,
  { plan, effect, recovery, reason, refusal }: EventOf<'tool_requests_collected'>['calls'][number],
): NonNullable<CallFacts['policy']> {
  return {
    ...{ seq, plan },
    ...(effect && { effect }),
    ...(recovery && { recovery }),
    ...(reason !== undefined && { reason }),
    ...(refusal && {
      refusal: {
        outcome: refusal.outcome,
        text: refusal.text.slice(0, 4_000),
        ...(refusal.error !== undefined && { error: cutText(refusal.error) }),
      },
    }),
  }
}

function describeApproval(
  { seq, reason, expiresAt, inputDigest, attempt, approvers }: EventOf<'approval_requested'>,
  decisions: readonly EventOf<'approval_decided'>[],
  own: readonly RuntimeEvent[],
): CallApproval {
  const decided = decisions.find((decision) => decision.seq > seq && decision.attempt === attempt)
  return {
    ...{ seq, inputDigest },
    ...(approvers && { approvers }),
    added: own
      .filter((event) => event.type === 'approval_added')
      .filter((event) => event.seq > seq && event.attempt === attempt && !event.elsewhere)
      .map(({ seq: at, by, roles }) => ({ seq: at, by, ...(roles && { roles }) })),
    ...(reason !== undefined && { reason }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(decided && {
      decision: {
        seq: decided.seq,
        approved: decided.approved,
        by: decided.by,
        ...(decided.via !== undefined && { via: decided.via }),
        ...(decided.reason !== undefined && { reason: decided.reason }),
        ...(decided.roles && { roles: decided.roles }),
        isElsewhere: decided.elsewhere === true,
        isBound: decided.inputDigest === inputDigest,
      },
    }),
  }
}

function digestOf(
  input: JsonObject,
  started: EventOf<'tool_started'> | undefined,
  own: readonly RuntimeEvent[],
): Pick<CallFacts, 'digest'> {
  const recorded = started?.inputDigest
  if (recorded === undefined) return {}
  if (own.some(({ removed }) => removed !== undefined)) return { digest: { recorded, is: 'gone' } }
  return { digest: { recorded, is: computeDigest(input) === recorded ? 'same' : 'other' } }
}

function describeAttempt(
  { attempt, seq }: EventOf<'tool_started'>,
  own: readonly RuntimeEvent[],
): CallAttempt {
  const next = own.find((event) => event.type === 'tool_started' && event.seq > seq)?.seq ?? Infinity
  const within = own.filter((event) => event.seq > seq && event.seq < next)
  const failed = within.find((event) => event.type === 'tool_attempt_failed')
  const end = failed ?? within.find((event) => event.type === 'tool_result')
  const deferred = within.find((event) => event.type === 'tool_deferred')
  return {
    ...{ attempt, seq },
    ...(end && { endSeq: end.seq, outcome: end.outcome }),
    ...(end?.durationMs !== undefined && { durationMs: end.durationMs }),
    ...(failed && { text: cutText(joinContent(failed.content)), retryAt: failed.retryAt }),
    ...(end?.error !== undefined && { error: cutText(end.error) }),
    progress: within.filter((event) => event.type === 'tool_progress').length,
    ...(deferred && {
      deferred: {
        seq: deferred.seq,
        receipt: deferred.receipt,
        ...(deferred.deadlineAt !== undefined && { deadlineAt: deferred.deadlineAt }),
      },
    }),
  }
}

function describeResult(event: EventOf<'tool_result'>): NonNullable<CallFacts['result']> {
  const { seq, outcome, durationMs, content, projected, shown, error, settled, reused } = event
  const read = shown ?? projected
  return {
    ...{ seq, outcome },
    ...(durationMs !== undefined && { durationMs }),
    recorded: cutText(joinContent(content), 20_000),
    ...(read && {
      read: cutText(joinContent(read), 20_000),
      readBecause: shown ? ('shortened' as const) : ('projected' as const),
    }),
    ...(error !== undefined && { error: cutText(error, 20_000) }),
    ...(settled && { settledBy: [settled.by, settled.reason].filter(Boolean).join(': ') || 'a caller' }),
    ...(reused !== undefined && { reused }),
  }
}
