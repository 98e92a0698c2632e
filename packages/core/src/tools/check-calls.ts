import type { AnyContext } from '../events/agent-definition.ts'
import { type Approvers, approvers } from '../events/event-parts.ts'
import type { ToolEffect } from '../events/model-request.ts'
import {
  type CallVerdict,
  type CheckedCall,
  type RepairedInput,
  repairedInputSchema,
  type Signal,
  type UnfitInput,
  verdictSchema,
} from '../events/signals.ts'
import { listGuardrails } from '../machine/required-effects.ts'
import type { Call, RunState } from '../machine/state.ts'
import { answerInTime, CHECK_MS, late } from '../values/answer-in-time.ts'
import type { Clock, Host } from '../values/host.ts'
import type { ToolCallId } from '../values/ids.ts'
import { isSameJson, type JsonObject, omitUndefined } from '../values/json.ts'
import { ignoreRejection, isThenable } from '../values/option.ts'
import { findNearestNames, formatErrorStack, formatError } from '../values/text.ts'
import {
  toGuardrailContext,
  guardCall,
  type Guardrail,
  selectGuardrails,
  type ToolInputGuardrail,
} from './guardrails.ts'
import type { CallContext, Tool } from './tool.ts'

/** A call as an agent's approval policy sees it. */
export interface PolicyCall<Context = unknown> extends CallContext<Context> {
  /** The agent whose model asks for the call. */
  readonly agent: string
  readonly name: string
  readonly input: JsonObject
  readonly effect: ToolEffect
}

/**
 * Decides about a call that its tool allows or asks about: `run` (as the tool decides), `ask`, or `deny`, each with a
 * reason where one is to be on record. Pure: a replay calls it again. A throw denies the call.
 */
export type ApprovalPolicy<Context = AnyContext> = (
  call: PolicyCall<Context>,
) => PolicyVerdict | Promise<PolicyVerdict>
export type PolicyVerdict =
  | 'run'
  | 'ask'
  /** Runs it, and why: the reason is recorded. */
  | { readonly run: string }
  | {
      /** Why a person is asked. */
      readonly ask: string
      /** Who may approve the call. Each of several demands has to be satisfied. */
      readonly approvers?: Approvers | readonly Approvers[] | undefined
    }
  | { readonly deny: string }

/** Returns the verdict of a policy. Rejects if it answers none: a policy may be written without a compiler. */
async function askPolicy<Context>(
  policy: ApprovalPolicy<Context>,
  call: PolicyCall<Context>,
): Promise<PolicyVerdict> {
  const verdict: unknown = await policy(call)
  if (isVerdict(verdict)) return verdict
  throw new TypeError(
    "it returned neither 'run', { run: 'why' }, 'ask', { ask: 'why', approvers: { count, roles } } nor { deny: 'why' }",
  )
}

function isVerdict(verdict: unknown): verdict is PolicyVerdict {
  if (verdict === 'run' || verdict === 'ask') return true
  const given = Object(verdict) as { readonly [Name in 'run' | 'ask' | 'deny' | 'approvers']?: unknown }
  if (typeof given.deny === 'string' || typeof given.run === 'string') return true
  const demands: readonly unknown[] = given.approvers === undefined ? [] : [given.approvers].flat()
  return typeof given.ask === 'string' && demands.every((demand) => approvers(demand) === undefined)
}

/** What a verdict demands of those who approve. */
function listDemands(verdict: PolicyVerdict | CallVerdict): readonly Approvers[] {
  if (typeof verdict === 'string' || !('approvers' in verdict) || verdict.approvers === undefined) return []
  return [verdict.approvers].flat()
}

/** The demands of several verdicts, each once; none if none has any. */
function joinDemands(...verdicts: readonly (PolicyVerdict | CallVerdict)[]): {
  readonly approvers?: readonly Approvers[]
} {
  const demands = verdicts.flatMap(listDemands)
  const joined = demands.filter(
    (demand, index) => demands.findIndex((other) => isSameJson(demand, other)) === index,
  )
  return joined.length === 0 ? {} : { approvers: joined }
}

/**
 * Combines policies so that the strictest decides: if one denies a call it is denied, if one asks a person is asked.
 * Each policy checks every call.
 */
export function combinePolicies(
  ...given: readonly (ApprovalPolicy | undefined)[]
): ApprovalPolicy | undefined {
  const policies = given.filter((policy) => policy !== undefined)
  if (policies.length < 2) return policies[0]
  return async (call) => {
    const verdicts = await Promise.all(policies.map((policy) => askPolicy(policy, call)))
    const isDenial = (verdict: PolicyVerdict): boolean => typeof verdict === 'object' && 'deny' in verdict
    const isQuestion = (verdict: PolicyVerdict): boolean => typeof verdict === 'object' && 'ask' in verdict
    const strictest =
      verdicts.find(isDenial) ?? verdicts.find(isQuestion) ?? verdicts.find((verdict) => verdict === 'ask')
    if (strictest === undefined) {
      const reasons = verdicts.flatMap((verdict) =>
        typeof verdict === 'object' && 'run' in verdict ? [verdict.run] : [],
      )
      return reasons.length === 0 ? 'run' : { run: reasons.join('; ') }
    }
    return typeof strictest === 'object' && 'ask' in strictest
      ? { ...strictest, ...joinDemands(...verdicts) }
      : strictest
  }
}

export type Judged = Pick<CheckedCall, 'verdict' | 'finds' | 'input'>

/** The verdict of a check on one call, and how its input was repaired. */
export type Repaired = Judged & { readonly repairs?: readonly string[] }

/**
 * The check of a call whose tool repairs inputs: if the input does not fit, the tool may repair it once, and the repaired
 * input is checked instead. If that does not fit either, the call ends with the first refusal.
 */
function checkWithRepair(
  asked: Call,
  tool: Tool,
  check: (call: Call) => Judged | Promise<Judged>,
): Repaired | Promise<Repaired> {
  const first = check(asked)
  if (isThenable(first)) return first.then((late) => repairIfUnfit(late, asked, tool, check))
  return needsRepair(first) ? repairIfUnfit(first, asked, tool, check) : first
}

function needsRepair({ verdict, input }: Judged): boolean {
  return isUnfit(verdict) && input === undefined
}

async function repairIfUnfit(
  first: Judged,
  asked: Call,
  tool: Tool,
  check: (call: Call) => Judged | Promise<Judged>,
): Promise<Repaired> {
  if (!needsRepair(first)) return first
  const repaired = askRepair(tool, asked)
  if (repaired === undefined) return first
  const { malformed: _text, ...call } = asked
  const judged = await check({ ...call, input: repaired.input })
  if (isUnfit(judged.verdict)) return first
  const { input, repairs } = repaired
  return { input, ...judged, repairs, verdict: addRepairNote(judged.verdict, repaired, tool.effect) }
}

export function isUnfit(verdict: CallVerdict): boolean {
  return verdict.kind === 'refuse' && verdict.outcome === 'invalid_input'
}

/** Returns an input that a tool has repaired; `undefined` if it cannot, or if the repair cannot be kept. */
export function askRepair(tool: Tool<never>, unfit: UnfitInput): RepairedInput | undefined {
  const { toolCallId, input, malformed } = unfit
  try {
    const repaired = tool.repair?.({ toolCallId, input, ...(malformed && { malformed }) })
    if (repaired && repairedInputSchema(repaired) === undefined) return repaired
    ignoreRejection(repaired)
    return undefined
  } catch {
    return undefined
  }
}

/** The verdict with what was repaired for the person who is asked. A write whose input was guessed at does not run unasked. */
function addRepairNote(
  verdict: CallVerdict,
  { repairs, isGuess }: RepairedInput,
  effect: ToolEffect,
): CallVerdict {
  const note = `The model's input did not fit and was repaired: ${repairs.join('; ')}.`
  if (verdict.kind === 'run') return isGuess && effect === 'write' ? { kind: 'ask', reason: note } : verdict
  if (verdict.kind === 'refuse') return verdict
  const { reason } = verdict
  // In a replay the recorded reason contains it already.
  const withNote = reason?.endsWith(note) ? reason : reason === undefined ? note : `${reason}. ${note}`
  return { ...verdict, reason: withNote }
}

/** Whose calls are checked. */
export interface CallChecker {
  readonly tools: readonly Tool[]
  readonly approval?: ApprovalPolicy
  readonly guardrails?: readonly Guardrail[]
}

/** Where the calls are, and what their check may use. */
export interface CheckContext {
  readonly state: RunState
  /** The value that the application passed to this run. */
  readonly context: AnyContext
  readonly clock: Clock
  /** Takes the exceptions of checks and policies; a replay has none. */
  readonly report?: Host['report']
  /** Names of the tools that the turn offered, where not all of them. */
  readonly offered?: readonly string[]
  /** In a fork: the calls of the other run whose recorded results answer calls, each at its call's place. */
  readonly answering?: (
    calls: readonly Pick<Call, 'toolCallId' | 'name' | 'input'>[],
  ) => readonly (ToolCallId | undefined)[]
}

/**
 * Checks every call of a reply against its tool and the agent's policy, and posts one `calls_checked`: before it returns, unless a
 * check waits for something. Runs nothing.
 */
export function checkCalls(
  calls: readonly Call[],
  checker: CallChecker,
  context: CheckContext,
  post: (signal: Signal) => void,
): void | Promise<void> {
  const { state, offered } = context
  const tools = checker.tools.filter(({ name }) => offered === undefined || offered.includes(name))
  // Only one agent can continue: the first handoff that was asked for.
  const handoff = calls.find(({ name }) => tools.some((tool) => tool.name === name && tool.handoff))
  // Guardrails on results look at those of a turn: work that ends later would pass them.
  const isGuarded = listGuardrails(state, 'tool_output').length > 0
  const checking = calls.map((call): CheckedCall | Promise<CheckedCall> => {
    const { toolCallId, name } = call
    const tool = tools.find((known) => known.name === name)
    if (tool === undefined) return refuseUnknownTool(call, tools)
    const { effect, recovery, retry, serial, maxConcurrency, repeats, background, child, handoff: to } = tool
    const more = omitUndefined({
      retry,
      serial,
      maxConcurrency,
      repeats,
      background: isGuarded ? undefined : background,
      child,
      handoff: to,
    })
    const known = { toolCallId, effect, recovery, ...more }
    if (handoff && tool.handoff && call !== handoff) {
      const text = `A reply can hand the conversation over once: only its first handoff counts, which is the call of ${handoff.name}. Nothing was run; ask for ${name} alone if it is still needed.`
      return { ...known, verdict: { kind: 'refuse', outcome: 'skipped', text } }
    }
    const judged = checkWithRepair(call, tool, (asked) => judgeCall(asked, tool, checker, context))
    return isThenable(judged) ? judged.then((late) => ({ ...known, ...late })) : { ...known, ...judged }
  })
  const finish = (checked: readonly CheckedCall[]): void =>
    post({ type: 'calls_checked', turn: state.turn, calls: withRecorded(calls, checked, context) })
  if (checking.some(isThenable)) return Promise.all(checking.map(async (each) => await each)).then(finish)
  finish(checking as readonly CheckedCall[])
}

function refuseUnknownTool({ toolCallId, name }: Call, tools: readonly Tool[]): CheckedCall {
  const names = tools.map((each) => each.name)
  const near = findNearestNames(name, names, 3)
  const hint = near.length === 0 ? '' : ` The nearest are ${near.join(', ')}.`
  const text = `There is no tool named ${name}. Nothing was run; use one of the tools you were given.${hint}`
  return { toolCallId, verdict: { kind: 'refuse', outcome: 'unknown_tool', text } }
}

/** Names the recorded results that answer those calls which are to run, with the input that guardrails left them. */
function withRecorded(
  calls: readonly Call[],
  checked: readonly CheckedCall[],
  { answering }: CheckContext,
): readonly CheckedCall[] {
  if (answering === undefined) return checked
  const asked = checked.flatMap(({ toolCallId, input, verdict }) => {
    const call = calls.find((each) => each.toolCallId === toolCallId)
    if (call === undefined || verdict.kind === 'refuse') return []
    return [{ toolCallId, name: call.name, input: input ?? call.input }]
  })
  const found = answering(asked)
  const recorded = new Map(asked.map(({ toolCallId }, index) => [toolCallId, found[index]]))
  return checked.map((each) => ({ ...each, ...omitUndefined({ recorded: recorded.get(each.toolCallId) }) }))
}

/** The tool's own say, then what the guardrails make of the input, then the agent's policy about what is left. */
export function judgeCall(
  call: Call,
  tool: Tool,
  checker: CallChecker,
  context: CheckContext,
): Judged | Promise<Judged> {
  const own = askTool(call, tool, context)
  const looking = selectGuardrails(checker.guardrails ?? [], 'tool_input')
  if (looking.length > 0 || checker.approval !== undefined)
    return judgeAll(call, tool, { own, looking, approval: checker.approval }, context)
  return isThenable(own) ? own.then((verdict) => ({ verdict })) : { verdict: own }
}

async function judgeAll(
  call: Call,
  tool: Tool,
  judges: {
    readonly own: CallVerdict | Promise<CallVerdict>
    readonly looking: readonly ToolInputGuardrail[]
    readonly approval: ApprovalPolicy | undefined
  },
  context: CheckContext,
): Promise<Judged> {
  const { looking, approval } = judges
  const { toolCallId, name } = call
  const judge = async (input: JsonObject, verdict: CallVerdict): Promise<CallVerdict> => {
    if (verdict.kind === 'refuse' || approval === undefined) return verdict
    const about = {
      ...toCallContext(call, context),
      agent: context.state.agent,
      name,
      input,
      effect: tool.effect,
    }
    return reportThrown(call, await judgeByPolicy(verdict, about, approval), context)
  }
  const own = await judges.own
  if (own.kind === 'refuse' || looking.length === 0) return { verdict: await judge(call.input, own) }
  const subject = { toolCallId, name, input: call.input }
  const about = toGuardrailContext(context.state, context.context)
  const { finds, input, blocked } = await guardCall(looking, subject, about, context.clock, context.report)
  if (blocked !== undefined) return { finds, verdict: { kind: 'refuse', outcome: 'denied', text: blocked } }
  if (input === undefined) return { finds, verdict: await judge(call.input, own) }
  const verdict = await askTool({ ...call, input }, tool, context)
  return { finds, input, verdict: await judge(input, verdict) }
}

function toCallContext({ toolCallId }: Call, { state, context }: CheckContext): CallContext<AnyContext> {
  return { runId: state.runId, turn: state.turn, toolCallId, context }
}

/** At once where the tool answers at once: a reply may hold a thousand calls. */
function askTool(call: Call, tool: Tool, context: CheckContext): CallVerdict | Promise<CallVerdict> {
  const { input, malformed } = call
  if (malformed) {
    const text = `The input is not a JSON object that can be used (${malformed.error}). Nothing was run; ask again with a JSON object that fits the schema.`
    return { kind: 'refuse', outcome: 'invalid_input', text }
  }
  try {
    const answer = tool.check(input, toCallContext(call, context))
    return isThenable(answer)
      ? awaitVerdict(call, answer, context)
      : reportThrown(call, requireVerdict(answer), context)
  } catch (error) {
    return reportThrown(call, refuseFailedCheck(error), context)
  }
}

async function awaitVerdict(
  call: Call,
  answer: PromiseLike<CallVerdict>,
  context: CheckContext,
): Promise<CallVerdict> {
  try {
    const verdict = await answerInTime(() => answer, context.clock)
    if (verdict === late) return refuseFailedCheck(`it did not end within ${CHECK_MS} ms`)
    return reportThrown(call, requireVerdict(verdict), context)
  } catch (error) {
    return reportThrown(call, refuseFailedCheck(error), context)
  }
}

/**
 * Reports the exception behind a refusal to the host. Its stack is recorded; it may contain content that a model must not
 * see.
 */
function reportThrown(call: Call, verdict: CallVerdict, { report }: CheckContext): CallVerdict {
  if (verdict.kind !== 'refuse' || !('thrown' in verdict)) return verdict
  const { thrown, ...refusal } = verdict
  report?.(thrown, `The check of call ${call.toolCallId} of the tool ${call.name} failed`)
  return { ...refusal, error: formatErrorStack(thrown) }
}

async function judgeByPolicy(
  verdict: CallVerdict,
  call: PolicyCall<AnyContext>,
  approval: ApprovalPolicy,
): Promise<CallVerdict> {
  try {
    return requireVerdict(chooseStricter(verdict, await askPolicy(approval, call)))
  } catch (error) {
    return refuseFailedCheck(
      error,
      `The approval of the agent ${call.agent} failed, so this call was not run`,
    )
  }
}

function refuseFailedCheck(
  error: unknown,
  what = 'The check of this call failed, so it was not run',
): CallVerdict {
  return { kind: 'refuse', outcome: 'denied', text: `${what}: ${formatError(error)}`, thrown: error }
}

/** Tools and policies may be written without a compiler. */
function requireVerdict(verdict: CallVerdict): CallVerdict {
  if (verdictSchema(verdict)) throw new TypeError('its verdict is not run, ask or refuse')
  return verdict
}

/** The agent's policy may ask for more than the tool does, never for less. */
function chooseStricter(verdict: CallVerdict, policy: PolicyVerdict): CallVerdict {
  if (policy === 'run') return verdict
  if (policy === 'ask') return verdict.kind === 'ask' ? verdict : { kind: 'ask' }
  if ('deny' in policy) return { kind: 'refuse', outcome: 'denied', text: policy.deny }
  if ('ask' in policy) return { kind: 'ask', reason: policy.ask, ...joinDemands(verdict, policy) }
  if (verdict.kind === 'refuse') return verdict
  // In a replay the tool's own verdict has the recorded reason already.
  const reasons = [...new Set([verdict.reason, policy.run])].filter((reason) => reason !== undefined)
  return { ...verdict, reason: reasons.join('; ') }
}
