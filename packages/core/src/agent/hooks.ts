import type { AnyContext } from '../events/agent-definition.ts'
import type { EventOf, EventType, RuntimeEvent } from '../events/event.ts'
import { answerInTime, late } from '../values/answer-in-time.ts'
import type { Host } from '../values/host.ts'
import type { RunId } from '../values/ids.ts'
import {
  anyFunction,
  fields,
  listOf,
  maybe,
  milliseconds,
  type Schema,
  trueOrFalse,
} from '../values/option.ts'

/** A moment of a run, as a hook sees it. */
export interface HookMoment<T extends EventType = EventType, Context = unknown> {
  readonly runId: RunId
  /** The active agent. */
  readonly agent: string
  /** The event, which is on record. */
  readonly event: EventOf<T>
  /** The application's context of this run. */
  readonly context: Context
}

type Hook<T extends EventType, Context> = (moment: HookMoment<T, Context>) => void | Promise<void>

/**
 * Functions that observe a run. As soon as an event is on record, the process that recorded it calls the hook. A hook
 * cannot change the run: if it throws or rejects, `host.report` gets the error, and the run continues.
 */
export interface RunHooks<Context = AnyContext> {
  /** Makes the run wait for each hook before it continues. Default: `false`. */
  readonly awaited?: boolean | undefined
  /** The longest wait for one hook, in milliseconds. Default: 10,000. */
  readonly timeoutMs?: number | undefined
  readonly runStarted?: Hook<'run_started' | 'run_resumed', Context> | undefined
  readonly runEnded?: Hook<'run_finished', Context> | undefined
  /** Called for the first model call of a turn. */
  readonly turnStarted?: Hook<'model_call_started', Context> | undefined
  /** Called when the results of the turn's tools are in the history, or the run has ended. */
  readonly turnEnded?: Hook<'tool_results_injected' | 'run_finished', Context> | undefined
  /** Called for each attempt of a model call. */
  readonly modelCallStarted?: Hook<'model_call_started', Context> | undefined
  readonly modelCallEnded?: Hook<'assistant_message_finished' | 'model_stream_failed', Context> | undefined
  readonly toolStarted?: Hook<'tool_started', Context> | undefined
  readonly toolEnded?: Hook<'tool_result', Context> | undefined
  /** The model has asked to hand the conversation over; the calls of its reply are checked. */
  readonly handoffStarted?: Hook<'tool_requests_collected', Context> | undefined
  readonly handoffEnded?: Hook<'agent_handed_off', Context> | undefined
  /** A guardrail has found something. */
  readonly guardrailTripped?: Hook<'guardrail_tripped', Context> | undefined
  /** All guardrails of one kind have checked. */
  readonly guardrailsEnded?: Hook<'guardrails_checked', Context> | undefined
  readonly compactionStarted?: Hook<'compaction_started', Context> | undefined
  readonly compactionEnded?: Hook<'context_compacted', Context> | undefined
}

/** Hooks of a run, or several of them. */
export type GivenHooks<Context = AnyContext> = RunHooks<Context> | readonly RunHooks<Context>[]

/** The names of the functions among the hooks. */
type HookName = Exclude<keyof RunHooks, 'awaited' | 'timeoutMs'>

const someHook = fields<RunHooks>(
  {
    awaited: maybe(trueOrFalse),
    timeoutMs: maybe(milliseconds),
    runStarted: maybe(anyFunction),
    runEnded: maybe(anyFunction),
    turnStarted: maybe(anyFunction),
    turnEnded: maybe(anyFunction),
    modelCallStarted: maybe(anyFunction),
    modelCallEnded: maybe(anyFunction),
    toolStarted: maybe(anyFunction),
    toolEnded: maybe(anyFunction),
    handoffStarted: maybe(anyFunction),
    handoffEnded: maybe(anyFunction),
    guardrailTripped: maybe(anyFunction),
    guardrailsEnded: maybe(anyFunction),
    compactionStarted: maybe(anyFunction),
    compactionEnded: maybe(anyFunction),
  },
  {
    onAgentStart: 'runStarted',
    onAgentEnd: 'runEnded',
    onStepFinish: 'turnEnded',
    onFinish: 'runEnded',
    onLlmStart: 'modelCallStarted',
    onLlmEnd: 'modelCallEnded',
    onHandoff: 'handoffEnded',
  },
)
const hookList = listOf(someHook)

/** Checks hooks, or a list of them. */
export const someHooks: Schema = (value) => (Array.isArray(value) ? hookList(value) : someHook(value))

export function listHooks(given: GivenHooks | undefined): readonly RunHooks[] {
  if (given === undefined) return []
  return Array.isArray(given) ? (given as readonly RunHooks[]) : [given as RunHooks]
}

/** The hooks that an event of each type is for; `null` if there are none. */
const hooksOfType: { readonly [T in EventType]: ((event: EventOf<T>) => readonly HookName[]) | null } = {
  run_started: () => ['runStarted'],
  schedule_set: null,
  schedule_fired: null,
  history_carried: null,
  session_edited: null,
  history_edited: null,
  run_resumed: () => ['runStarted'],
  run_finished: ({ turn }) => (turn === 0 ? ['runEnded'] : ['turnEnded', 'runEnded']),
  input_received: null,
  input_settled: null,
  model_call_started: ({ attempt }) =>
    attempt === 1 ? ['turnStarted', 'modelCallStarted'] : ['modelCallStarted'],
  assistant_started: null,
  assistant_text_delta: null,
  assistant_reasoning_delta: null,
  tool_input_delta: null,
  tool_request_ready: null,
  usage_updated: null,
  assistant_message_finished: () => ['modelCallEnded'],
  model_stream_failed: () => ['modelCallEnded'],
  tool_requests_collected: ({ calls }) =>
    calls.some(({ handoff }) => handoff !== undefined) ? ['handoffStarted'] : [],
  approval_requested: null,
  approval_added: null,
  approval_decided: null,
  approval_applied: null,
  approval_withdrawn: null,
  tool_started: () => ['toolStarted'],
  tool_progress: null,
  tool_deferred: null,
  tool_attempt_failed: null,
  tool_result: () => ['toolEnded'],
  background_ended: null,
  tool_results_injected: () => ['turnEnded'],
  compaction_started: () => ['compactionStarted'],
  context_compacted: () => ['compactionEnded'],
  agent_handed_off: () => ['handoffEnded'],
  guardrail_tripped: () => ['guardrailTripped'],
  guardrails_checked: () => ['guardrailsEnded'],
  output_checked: null,
  limit_reached: null,
  limit_raised: null,
  cancel_requested: null,
  feedback_given: null,
}

/** How long a run waits for a hook, in milliseconds, where the hook does not say. */
const WAIT_MS = 10_000

export interface HookCaller {
  readonly hooks: readonly RunHooks[]
  readonly host: Pick<Host, 'clock' | 'report'>
  readonly context: unknown
}

/**
 * Calls the hooks of events that are on record, in order. Resolves when those that the run waits for have ended, failed or
 * taken too long; never rejects.
 */
export async function callHooks(
  events: readonly RuntimeEvent[],
  agentBefore: string,
  caller: HookCaller,
): Promise<void> {
  let agent = agentBefore
  for (const event of events) {
    if (event.type === 'run_started') agent = event.agent
    const moment = { runId: event.runId, agent, event, context: caller.context }
    const selectNames = hooksOfType[event.type] as ((event: RuntimeEvent) => readonly HookName[]) | null
    for (const name of selectNames?.(event) ?? []) {
      const awaited = caller.hooks.flatMap((hooks) => callHook(hooks, name, moment, caller) ?? [])
      if (awaited.length > 0) await Promise.all(awaited)
    }
    if (event.type === 'agent_handed_off') agent = event.to
  }
}

/** Calls one hook; its failure is reported and goes no further. Returns the wait for it, if the run is to wait. */
function callHook(
  hooks: RunHooks,
  name: HookName,
  moment: HookMoment,
  { host }: HookCaller,
): Promise<void> | undefined {
  const hook = hooks[name] as ((moment: HookMoment) => void | Promise<void>) | undefined
  if (hook === undefined) return undefined
  const { awaited, timeoutMs = WAIT_MS } = hooks
  const call = async (): Promise<void> => {
    try {
      await hook(moment)
    } catch (error) {
      host.report(error, `The hook ${name} of run ${moment.runId} failed`)
    }
  }
  const wait = async (called: Promise<void>): Promise<void> => {
    if ((await answerInTime(() => called, host.clock, timeoutMs)) !== late) return
    host.report(
      new Error(`It took longer than ${timeoutMs} ms.`),
      `The run continues without its hook ${name}`,
    )
  }
  const called = call()
  return awaited ? wait(called) : undefined
}
