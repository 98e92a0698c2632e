import type { Agent } from '../agent/agent.ts'
import type { Message, ModelRef, ProviderState, UserPart } from '../events/content.ts'
import type { EventOf, FinishReason, RuntimeEvent } from '../events/event.ts'
import type { LimitName } from '../events/limits.ts'
import type { Usage } from '../events/usage.ts'
import type { Ledger } from '../ledger/ledger.ts'
import {
  listCallsAwaitingChild,
  getCurrentModel,
  type DeferredCall,
  listDeferredCalls,
  type PendingApproval,
  listPendingApprovals,
} from '../machine/calls.ts'
import { evolve } from '../machine/evolve.ts'
import { audit } from '../machine/laws.ts'
import { findWakeTime, isSuspended } from '../machine/next-action.ts'
import { toTranscript } from '../machine/request.ts'
import type { RunState } from '../machine/state.ts'
import { ConfigurationError, type ModelFailure } from '../values/errors.ts'
import { deriveChildRunId, type RunId } from '../values/ids.ts'
import { deepFreeze, type Json, omitUndefined } from '../values/json.ts'

/** Folds a run, up to an event if given; `undefined` if the ledger has no such run. */
export async function loadState(ledger: Ledger, runId: RunId, toSeq?: number): Promise<RunState | undefined> {
  let state: RunState | undefined
  const range = toSeq === undefined ? {} : { toSeq }
  for await (const event of ledger.read(runId, range)) state = evolve(state, event)
  return state
}

/**
 * Folds an event of another process onto what is known of the run. After a take-over the run is read anew: a store that lost its power
 * may have lost events that were read here, and others are in their place.
 */
export async function foldFollowed(ledger: Ledger, state: RunState, event: RuntimeEvent): Promise<RunState> {
  if (event.seq <= state.seq) return state
  if (event.epoch === state.epoch) return audit(state, event)
  let anew: RunState | undefined
  for await (const each of ledger.read(event.runId)) anew = audit(anew, each)
  return anew ?? state
}

/** Returns the first event of a run, which has its agent, options and origin; `undefined` if the ledger has no such run. */
export async function readStart(
  ledger: Pick<Ledger, 'read'>,
  runId: RunId,
): Promise<EventOf<'run_started'> | undefined> {
  for await (const event of ledger.read(runId, { toSeq: 1 })) {
    return event.type === 'run_started' ? event : undefined
  }
  return undefined
}

/** A failure that ended a run, and the model that it is of. */
export interface RunFailure extends ModelFailure {
  readonly provider: string
  readonly modelId: string
}

/** Fields of every run that has stopped. */
export interface StoppedRun {
  readonly runId: RunId
  /** Details about the ending, from the provider or the runtime. */
  readonly detail?: string
  /** How the model failed, if that ended the run: with its class, and whether the same request may succeed later. */
  readonly failure?: RunFailure
  /** The active agent: the one that the run was started with, or the last that took over. */
  readonly agent: string
  /**
   * The text of the model's last message, `''` without one; if the answer is a list, a choice or a plain value, its
   * JSON.
   */
  readonly text: string
  /** Tokens of the run and its child runs. */
  readonly usage: Usage
  /** US dollars, if prices are known. */
  readonly costUsd?: number
  readonly turns: number
  /** Tool calls that were started. */
  readonly toolCalls: number
  /** The number of child runs, their turns and their tool calls. */
  readonly children: { readonly runs: number; readonly turns: number; readonly toolCalls: number }
  /** Calls of the run and of its child runs that wait for a person. */
  readonly pendingApprovals: readonly PendingApproval[]
  /** Calls of the run and of its child runs that continue outside, until `runtime.settle`. */
  readonly deferredCalls: readonly DeferredCall[]
  /**
   * The earliest time at which the run or a child run has something to do by itself, in milliseconds since 1970 UTC: a deadline,
   * or the next attempt of a call. It does so if a process drives it then. Absent if only a command can continue it.
   */
  readonly wakeAt?: number
  /** The number of the last event. */
  readonly seq: number
  /** The conversation so far, as a model may see it: every call in it has its result. */
  readonly messages: readonly Message[]
  /**
   * Where the provider keeps the conversation up to here, if it does: options of the next run,
   * `runtime.run(agent, input, { ...result.providerState })`.
   */
  readonly providerState?: ProviderState
  /** `messages`, with another message of the user if given: input for another run, of any agent. */
  toInput(next?: string | readonly UserPart[]): readonly Message[]
}

function toInput(this: StoppedRun, next?: string | readonly UserPart[]): readonly Message[] {
  if (next === undefined) return this.messages
  const parts = typeof next === 'string' ? [{ type: 'text' as const, text: next }] : next
  return [...this.messages, { role: 'user', parts }]
}

/** A run that ended with the answer that its agent was asked for. */
export interface AnsweredRun<Output = unknown> extends StoppedRun {
  readonly status: 'done'
  readonly reason: 'answered'
  readonly limit?: undefined
  /** The answer: its text, or the value that the agent's schema parses from it. */
  readonly output: Output
}

/** A run that ended without the answer, and why. */
export interface EndedRun<Output = unknown> extends StoppedRun {
  readonly status: 'done'
  readonly reason: Exclude<FinishReason, 'answered'>
  readonly limit?: undefined
  /** The answer, if there is one. */
  readonly output: Output | undefined
}

/** A run that only a command can continue; no process needs to be alive for it. */
export interface SuspendedRun<Output = unknown> extends StoppedRun {
  readonly status: 'suspended'
  readonly reason?: undefined
  /** The limit that has to be raised. */
  readonly limit?: LimitName
  /** The answer, if there is one. */
  readonly output: Output | undefined
}

/** A run whose runtime was drained while the run was under way: `resume` continues it. */
export interface InterruptedRun<Output = unknown> extends StoppedRun {
  readonly status: 'interrupted'
  readonly reason?: undefined
  readonly limit?: LimitName
  /** The answer, if there is one. */
  readonly output: Output | undefined
}

/** The result of a run that has stopped. Every expected ending is a result, not an exception. */
export type RunResult<Output = unknown> =
  | AnsweredRun<Output>
  | EndedRun<Output>
  | SuspendedRun<Output>
  | InterruptedRun<Output>

/** Returns the result of a run that has stopped in this state, from its own events only. */
export function toResult(state: RunState): RunResult<Json> {
  const { lastText: text } = state
  const { turns, toolCalls, children, usage, costUsd } = state.totals
  const output = state.output ? state.output.value : state.definition.output ? undefined : text
  const resting = {
    runId: state.runId,
    agent: state.agent,
    text,
    turns,
    toolCalls,
    ...deepFreeze({ usage, children }),
    ...omitUndefined({ costUsd, providerState: state.keptState }),
    pendingApprovals: listPendingApprovals(state),
    deferredCalls: listDeferredCalls(state),
    seq: state.seq,
    messages: toTranscript(state),
    toInput,
  }
  if (state.phase !== 'done') {
    const status = isSuspended(state) ? 'suspended' : 'interrupted'
    const { metLimit } = state
    return {
      ...resting,
      status,
      output,
      ...omitUndefined({ limit: metLimit?.limit, wakeAt: findWakeTime(state) }),
    }
  }
  const { reason, detail } = state
  // An answer that does not fit ends the run as `output_invalid`, so where the reason is `answered`, there is one.
  return { ...resting, status: 'done', reason, output, ...omitUndefined({ detail }) } as RunResult<Json>
}

/** Returns the whole result: with what child runs wait for, and with the output as the agent's schema parses it. */
export async function readResult<Output>(
  state: RunState,
  ledger: Ledger,
  agent: Agent<Output> | undefined,
): Promise<RunResult<Output>> {
  const result = await withFailure(await readResultWithChildren(state, ledger), state, ledger)
  if (state.output === undefined) return result as RunResult<Output>
  return { ...(result as RunResult<Output>), output: await readOutput(state, state.output.value, agent) }
}

/**
 * Returns a recorded answer as the agent's schema parses it; as it is if this process does not know the agent, and null where it
 * was removed from the record.
 */
export async function readOutput<Output>(
  state: RunState,
  value: Json,
  agent: Agent<Output> | undefined,
): Promise<Output> {
  if (agent?.output === undefined) return value as Output
  const read = await agent.output.read(value)
  if ('output' in read) return read.output
  if (value === null && state.removedFrom !== undefined) return value as Output
  throw new ConfigurationError(
    `The answer of run ${state.runId} does not match today's output schema of the agent ${state.agent}: ${read.error}. The recorded answer is unchanged; read the run with the schema that it was started with.`,
  )
}

/** The most events between the failure of a model and the end of its run. */
const EVENTS_AT_END = 64

/** Adds how the model failed, if that ended the run. */
async function withFailure<Result extends StoppedRun>(
  result: Result,
  state: RunState,
  ledger: Ledger,
): Promise<Result> {
  if (
    state.phase !== 'done' ||
    !['model_failed', 'empty_reply', 'context_overflow', 'refused'].includes(state.reason)
  )
    return result
  let model: ModelRef | undefined
  let failure: ModelFailure | undefined
  for await (const event of ledger.read(state.runId, { fromSeq: Math.max(1, state.seq - EVENTS_AT_END) })) {
    if (event.type === 'model_call_started') model = event.model
    if (event.type === 'model_stream_failed') failure = event.failure
  }
  if (failure === undefined) return result
  const { provider, modelId } = model ?? getCurrentModel(state)
  return { ...result, failure: { ...failure, provider, modelId } }
}

/** Replaces the wait for child runs by what these wait for. */
export async function readResultWithChildren(state: RunState, ledger: Ledger): Promise<RunResult<Json>> {
  const own = toResult(state)
  let { pendingApprovals: approvals, deferredCalls: deferred, wakeAt = Infinity } = own
  for (const { toolCallId } of listCallsAwaitingChild(state)) {
    const child = await loadState(ledger, deriveChildRunId(state.runId, toolCallId))
    if (child === undefined) continue
    // A child run that has ended is reported to its parent as soon as that is driven.
    if (child.phase === 'done') wakeAt = Math.min(wakeAt, child.at)
    if (child.phase === 'done') continue
    const below = await readResultWithChildren(child, ledger)
    wakeAt = Math.min(wakeAt, below.wakeAt ?? Infinity)
    approvals = [...approvals, ...below.pendingApprovals]
    deferred = [...deferred.filter((call) => call.toolCallId !== toolCallId), ...below.deferredCalls]
  }
  return {
    ...own,
    pendingApprovals: approvals,
    deferredCalls: deferred,
    ...(wakeAt < Infinity && { wakeAt }),
  }
}
