import {
  type Agent,
  type AgentOptions,
  agentTool,
  type CompactionOptions,
  defineAgent,
  type Guardrail,
  handBack,
  handoff,
  type Message,
  type ModelRequest,
  type RuntimeEvent,
  joinText,
  type Tool,
} from '@tallystick/core'
import type { Approvers, CallVerdict, JsonObject, RetryPolicy } from '@tallystick/core/vocabulary'
import {
  type MortalLedger,
  sampleMessage,
  scriptedModel,
  type ScriptedModel,
  type ScriptedReply,
  type ScriptedStep,
  type TestReport,
  testTool,
  type TestToolOptions,
} from '@tallystick/testkit'
import type { CallPlan, GuardrailPlan, Program, Step } from './program.ts'

/** Guardrails that say the same of everything, as their plans have it. */
function createGuardrails(plans: readonly GuardrailPlan[]): readonly Guardrail[] {
  return plans.map((plan, index): Guardrail => {
    const named = { name: `guardrail ${index}`, timeoutMs: 200 }
    const { on, beside } = plan
    switch (on) {
      case 'input':
        return { ...named, on, beside, check: () => giveVerdict(plan, 'guarded input') }
      case 'output':
        return { ...named, on, check: () => giveVerdict(plan, '{"guarded":true}') }
      case 'tool_input':
        return { ...named, on, check: () => giveVerdict(plan, { do: 'succeed', guarded: true }) }
      case 'tool_output':
        return { ...named, on, check: () => giveVerdict(plan, 'guarded result') }
    }
  })
}

async function giveVerdict<Replacement>(
  { says }: GuardrailPlan,
  replacement: Replacement,
): Promise<'pass' | { block: string } | { record: string } | { replace: Replacement }> {
  await Promise.resolve()
  if (says === 'throw') throw new Error('broken guardrail')
  if (says === 'hang') return await new Promise(() => {})
  return {
    ...{ pass: 'pass' as const, block: { block: 'blocked' } },
    ...{ record: { record: 'seen' }, replace: { replace: replacement } },
  }[says]
}

/** The effects that really took place, as the tools saw them. */
export interface Effects {
  /** Effects of write tools, by call. */
  readonly effects: Map<string, number>
  /** Idempotency keys whose effect took place. */
  readonly keys: Set<string>
  /** Effects and model calls that began before what announces them was durable, and reads before it was on record. */
  readonly early: string[]
}

/** Waits that fall beside the others of a program: its timeouts, its grace time, its deadlines. */
const retry: RetryPolicy = { maxAttempts: 3, baseMs: 70, capMs: 100, maxRetryAfterMs: 0 }

type Body = NonNullable<TestToolOptions['run']>

/** Tools that misbehave as their input says, and that remember what they did to the world. */
function createTools(
  world: Effects,
  { durable, acknowledged }: Pick<MortalLedger, 'durable' | 'acknowledged'>,
): readonly Tool[] {
  const body = (name: string, writes: boolean, isApproved: boolean): Body => {
    // All reads of a program may run again. What is not a first start of one, or was approved, has to be durable.
    const mayStartLazily = !writes && !isApproved
    return async (
      run: { input: JsonObject; idempotencyKey: string; toolCallId: string; attempt: number },
      report: TestReport,
    ): Promise<string> => {
      const isHarmless = mayStartLazily && run.attempt === 1
      const isAnnounced = (isHarmless ? acknowledged : durable).some(
        (event) =>
          event.type === 'tool_started' &&
          event.toolCallId === run.toolCallId &&
          event.attempt === run.attempt,
      )
      if (!isAnnounced) world.early.push(`${name} ${run.toolCallId}`)
      const doing = run.input['do']
      if (doing === 'hang') await new Promise(() => {})
      if (doing === 'progress') report.progress('half')
      await Promise.resolve()
      if (doing === 'defer') report.defer('job', 500)
      if (doing === 'throw') throw new Error('broken')
      // The first attempt of a flaky call fails, before it has an effect.
      if (doing === 'flake' && run.attempt === 1) throw new Error('busy')
      if (writes) {
        world.effects.set(run.toolCallId, (world.effects.get(run.toolCallId) ?? 0) + 1)
        world.keys.add(run.idempotencyKey)
      }
      return `${name} did it`
    }
  }
  const check = (input: JsonObject): CallVerdict =>
    input['do'] === 'invalid'
      ? { kind: 'refuse', outcome: 'invalid_input', text: 'do: expected something else' }
      : { kind: 'run' }
  const tool = (name: string, { asks = false, ...options }: ToolPlan = {}): Tool => {
    const ask: CallVerdict = { kind: 'ask', ...(typeof asks === 'object' && { approvers: asks }) }
    return testTool({
      name,
      timeoutMs: 1_000,
      check: asks ? (input) => (input['do'] === 'invalid' ? check(input) : ask) : check,
      run: body(name, options.effect === 'write', asks !== false),
      ...options,
    })
  }
  const write = { effect: 'write' } as const
  // Tried again where they read, where a throw has changed nothing, and where a call may be repeated.
  const retried = { retry, check: undefined }
  return [
    tool('read'),
    tool('write', write),
    tool('rerunnable', { ...write, recovery: 'rerun' }),
    tool('retried', retried),
    tool('retried_write', { ...retried, ...write }),
    tool('retried_rerunnable', { ...retried, ...write, recovery: 'rerun' }),
    tool('reconciled', {
      ...write,
      recovery: 'reconcile',
      reconcile: async ({ idempotencyKey }) =>
        world.keys.has(idempotencyKey)
          ? { state: 'done', outcome: 'success', content: [{ type: 'text', text: 'it was done' }] }
          : { state: 'not_done' },
    }),
    tool('asking', { ...write, asks: true }),
    tool('asking_read', { asks: true }),
    tool('asking_two', { ...write, asks: [{ count: 2, roles: ['finance'] }] }),
    { ...tool('beside'), background: 'wait' },
    { ...tool('beside_write', { ...write, asks: true }), background: 'wait' },
    { ...tool('beside_rerunnable', { ...write, recovery: 'rerun' }), background: 'wait' },
    { ...tool('beside_left', write), background: 'leave' },
  ]
}

type ToolPlan = Omit<Partial<TestToolOptions>, 'name' | 'run'> & {
  readonly asks?: boolean | readonly Approvers[]
}

/** The parts of a program that its agents are made of. */
export type AgentPlan = Pick<
  Program,
  'steps' | 'limits' | 'compaction' | 'guardrails' | 'structured' | 'fallback'
> & {
  readonly instructions?: string
}

/** More model calls than any script needs that is played once. */
const MAX_CALLS = 20

/** One process's agents: what they saw of the world, and what they know to be durable. */
export interface Stage {
  readonly world: Effects
  readonly ledger: MortalLedger
  /** Attempts of each place of the script, over all processes. */
  readonly attempts: Map<number, number>
}

/**
 * The agents of a program: one that plays it, a second to which it hands over and which hands back, and a helper that
 * is a tool of both, with runs of its own.
 */
export function createAgent(plan: AgentPlan, stage: Stage): Agent<unknown> {
  const { world, ledger, attempts } = stage
  const begun = new Set<string>()
  const announced = (): void => {
    // Each call was announced before it began, and each announcement is of one call.
    const started = ledger.durable.find(
      (event) => event.type === 'model_call_started' && !begun.has(nameEvent(event)),
    )
    if (started) begun.add(nameEvent(started))
    else world.early.push('model call')
  }
  const reply = (request: ModelRequest): ScriptedReply => {
    announced()
    const turn = countReplies(request.messages)
    const attempt = (attempts.get(turn) ?? 0) + 1
    attempts.set(turn, attempt)
    // Without a summary the place in the script is lost with the left-out messages: the script must still end.
    const total = [...attempts.values()].reduce((sum, times) => sum + times, 0)
    return chooseReply(total > MAX_CALLS ? undefined : plan.steps[turn], attempt, request)
  }
  const tools = createTools(world, ledger)
  const helper = defineAgent({
    name: 'helper',
    description: 'Helps.',
    instructions: 'Help.',
    tools,
    model: repeatEndlessly((request) => {
      announced()
      return answerForHelp(request)
    }),
  })
  const shared: Omit<AgentOptions<unknown>, 'name' | 'instructions' | 'handoffs'> = {
    model: repeatEndlessly(reply),
    tools: [...tools, agentTool(helper)],
    limits: plan.limits,
    guardrails: createGuardrails(plan.guardrails),
    ...(plan.fallback && { fallbacks: [repeatEndlessly(reply, 'scripted-2')] }),
    ...(plan.compaction && { compaction: toCompaction(plan.compaction) }),
    ...(plan.structured && {
      output: { type: 'object', properties: { guarded: { type: 'boolean' } }, required: ['guarded'] },
    }),
  }
  const second: Agent<unknown> = defineAgent({
    ...shared,
    name: 'second',
    instructions: 'Play on.',
    handoffs: () => [
      handoff(first, { filter: (messages) => [sampleMessage(`${countReplies(messages)} replies before.`)] }),
    ],
  })
  const first: Agent<unknown> = defineAgent({
    ...shared,
    name: 'program',
    instructions: plan.instructions ?? 'Play.',
    handoffs: [second, handBack('user', { description: 'Gives up.' })],
  })
  return first
}

function nameEvent(event: RuntimeEvent): string {
  return `${event.runId} ${event.turn} ${'attempt' in event ? event.attempt : 0}`
}

function repeatEndlessly(step: (request: ModelRequest) => ScriptedReply, modelId?: string): ScriptedModel {
  return scriptedModel(
    Array.from({ length: 500 }, (): ScriptedStep => step),
    modelId,
  )
}

function toCompaction({ by, ...rest }: NonNullable<Program['compaction']>): CompactionOptions {
  switch (by) {
    case 'function':
      return { ...rest, summarize: (messages) => `${countReplies(messages)} replies before.` }
    case 'model':
      return {
        ...rest,
        summarize: scriptedModel(
          Array.from({ length: 500 }, (_, index): ScriptedStep => {
            const usage = { inputTokens: 60, outputTokens: 9 }
            return index % 3 === 2
              ? { fail: 'overloaded' }
              : (request) => ({ text: `${countRepliesBefore(request)} replies before.`, usage })
          }),
          'scripted-2',
        ),
      }
    case 'nobody':
      return rest
  }
}

/** How many replies a history holds, those in its summary included: the place in the script. */
function countReplies(messages: readonly Message[]): number {
  const [first] = messages
  const summary = first?.role === 'user' ? /\b(\d+) replies before/.exec(joinText(first.parts)) : undefined
  return Number(summary?.[1] ?? 0) + messages.filter(({ role }) => role === 'assistant').length
}

/** The same, as a model that sums up reads it. */
function countRepliesBefore({ messages: [first] }: ModelRequest): number {
  const text = first?.role === 'user' ? joinText(first.parts) : ''
  const before = Number(/\b(\d+) replies before/.exec(text)?.[1] ?? 0)
  return before + text.split('\nAssistant').length - 1
}

function chooseReply(step: Step | undefined, attempt: number, request: ModelRequest): ScriptedReply {
  if (step === undefined) return { text: 'The end.', usage: { inputTokens: 300, outputTokens: 50 } }
  const { text, reasoning, stopReason } = step
  const toolCalls = request.toolChoice.type === 'none' ? [] : step.calls.map(toScriptedCall)
  const fail = step.failures[attempt - 1]
  return {
    text,
    reasoning,
    toolCalls,
    ...(!step.unreported && { usage: { inputTokens: 250, outputTokens: 40 * attempt } }),
    ...(stopReason && { stopReason }),
    // As some vendors advise; of others an agent hears nothing.
    ...(stopReason === 'refused' && text !== '' && { refusal: { leaveOut: true, askAnother: true } }),
    ...(fail && { fail }),
  }
}

/** The provider claims the same id for every call: ids of the ledger have to be the runtime's own. */
function toScriptedCall({ tool, behaviour }: CallPlan): {
  id: string
  name: string
  input: JsonObject | string
} {
  if (behaviour === 'malformed') return { id: 'call_0', name: tool, input: '{"do":' }
  const input: JsonObject =
    tool === 'helper' && behaviour !== 'invalid' ? { task: behaviour } : { do: behaviour }
  return { id: 'call_0', name: tool, input }
}

/** Scripts the helper: a call with the ending that the task names, then its answer. */
function answerForHelp({ messages, toolChoice }: ModelRequest): ScriptedReply {
  const usage = { inputTokens: 70, outputTokens: 11 }
  const [first] = messages
  const task = first?.role === 'user' ? joinText(first.parts) : ''
  if (task === 'throw') return { text: 'I cannot', usage, fail: 'authentication' }
  if (messages.length > 1 || toolChoice.type === 'none') return { text: 'Helped.', usage }
  const tool = task === 'hang' ? 'asking' : 'write'
  const behaviour = task === 'defer' ? 'defer' : 'succeed'
  return { usage, toolCalls: [{ id: 'call_0', name: tool, input: { do: behaviour } }] }
}
