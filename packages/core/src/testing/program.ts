import type { Ledger } from '../ports/ledger.ts'
import type { Tool } from '../ports/tool.ts'
import { defineAgent, type Agent } from '../runtime/agent.ts'
import { memoryLedger } from '../runtime/memory-ledger.ts'
import { textOf, type Message, type StopReason } from '../vocabulary/content.ts'
import type { RuntimeEvent } from '../vocabulary/event.ts'
import type { JsonObject } from '../vocabulary/json.ts'
import type { Limits } from '../vocabulary/limits.ts'
import type { ModelRequest } from '../vocabulary/model-request.ts'
import type { CallVerdict } from '../vocabulary/signal.ts'
import type { Compaction } from '../machine/rules.ts'
import { mortalLedger, type CrashPoint, type MortalLedger } from './faults.ts'
import { manualClock } from './manual-clock.ts'
import { scriptedModel, type ScriptedReply, type ScriptedStep } from './scripted-model.ts'
import { seededRandom } from './seeded-random.ts'
import { simulate, type Simulated, type Simulation } from './simulate.ts'
import { testTool, type TestReport, type TestToolOptions } from './test-tool.ts'

/** An agent as data: what its model says, how its tools behave, what happens to it from outside. */
export interface Program {
  readonly steps: readonly Step[]
  readonly limits: Limits
  readonly compaction: Pick<Compaction, 'contextTokensMax' | 'keepMessages'> | undefined
  readonly crashes: readonly CrashPoint[]
  readonly cancelAtSeq: number | undefined
  readonly inputs: readonly { readonly atSeq: number; readonly delivery: 'steer' | 'queue' }[]
  readonly decisions: readonly ('approve' | 'deny' | 'edit')[]
  readonly randomness: number
}

/** What the model says at one turn. */
export interface Step {
  readonly text: string
  readonly reasoning: string
  readonly calls: readonly CallPlan[]
  readonly stopReason: StopReason | undefined
  /** Attempts that fail before one succeeds, and how. */
  readonly failures: readonly (
    | 'overloaded'
    | 'network'
    | 'truncated'
    | 'authentication'
    | 'context_overflow'
  )[]
}

/** A call, and what its tool does with it. */
export interface CallPlan {
  readonly tool: string
  readonly behaviour: 'succeed' | 'throw' | 'hang' | 'progress' | 'defer' | 'invalid' | 'malformed'
}

/** What really happened, as the tools saw it. */
export interface World {
  /** Effects of write tools, by call. */
  readonly effects: Map<string, number>
  /** Idempotency keys whose effect took place. */
  readonly keys: Set<string>
  /** Effects and model calls that began before what announces them was durable. */
  readonly early: string[]
}

/** How a program went, and what its tools saw of the world. */
export type Played = Simulated & { readonly world: World; readonly ledger: Ledger }

/** What the scripted model costs: 0.003 dollars for 1,000 tokens in, 0.015 for 1,000 out. */
const prices = { 'scripted-1': { inputUsd: 3, outputUsd: 15, source: 'test' } }

/** Plays a program to its end. */
export async function playProgram(
  { steps, limits, compaction, crashes, cancelAtSeq, inputs, decisions, randomness }: Program,
  start: Pick<Simulation, 'resume' | 'outside'> & { ledger?: Ledger; world?: World } = {},
): Promise<Played> {
  const world = start.world ?? { effects: new Map(), keys: new Set(), early: [] }
  const clock = manualClock()
  const ledger = start.ledger ?? memoryLedger()
  const attempts = new Map<number, number>()
  let decided = 0
  const simulated = await simulate({
    prices,
    ...{ ledger, clock, random: seededRandom(randomness), input: 'Go.', crashes, inputs },
    ...(start.resume && { resume: start.resume }),
    ...(start.outside && { outside: start.outside }),
    ...(cancelAtSeq !== undefined && { cancelAtSeq }),
    agentOf: (own) => agentOf({ steps, limits, compaction }, world, own, attempts),
    decide: () => {
      const decision = decisions[decided++] ?? 'approve'
      if (decision === 'deny') return { approve: false, reason: 'not today' }
      return decision === 'edit'
        ? { approve: true, input: { do: 'succeed', edited: true } }
        : { approve: true }
    },
  })
  return { ...simulated, world, ledger }
}

/** The agent of a program as code that nobody drives: for replays, which call no model and run no tool. */
export function idleAgentOf({ steps, limits, compaction }: Program): Agent {
  const world: World = { effects: new Map(), keys: new Set(), early: [] }
  return agentOf({ steps, limits, compaction }, world, mortalLedger(memoryLedger()), new Map())
}

function agentOf(
  { steps, limits, compaction }: Pick<Program, 'steps' | 'limits' | 'compaction'>,
  world: World,
  ledger: MortalLedger,
  attempts: Map<number, number>,
): Agent {
  const durable = (matches: (event: RuntimeEvent) => boolean): boolean => ledger.durable.some(matches)
  const reply = (request: ModelRequest): ScriptedReply => {
    // Nothing follows the fact that announces a model call until the call has begun.
    if (ledger.durable.at(-1)?.type !== 'model_call_started') world.early.push('model call')
    const turn = repliesIn(request.messages)
    const attempt = (attempts.get(turn) ?? 0) + 1
    attempts.set(turn, attempt)
    return replyOf(steps[turn], attempt, request)
  }
  const model = scriptedModel(Array.from({ length: 500 }, (): ScriptedStep => reply))
  const summarize = (messages: readonly Message[]): string => `${repliesIn(messages)} replies before.`
  return defineAgent({
    name: 'program',
    instructions: 'Play.',
    model,
    tools: toolsOf(world, durable),
    limits,
    ...(compaction && { compaction: { ...compaction, summarize } }),
  })
}

/** How many replies a history holds, those in its summary included: the place in the script. */
function repliesIn(messages: readonly Message[]): number {
  const [first] = messages
  const summary = first?.role === 'user' ? /^(\d+) replies before/.exec(textOf(first.parts)) : undefined
  return Number(summary?.[1] ?? 0) + messages.filter(({ role }) => role === 'assistant').length
}

/** Tools that misbehave as their input says, and that remember what they did to the world. */
function toolsOf(
  world: World,
  durable: (matches: (event: RuntimeEvent) => boolean) => boolean,
): readonly Tool[] {
  const body = (name: string, writes: boolean): NonNullable<TestToolOptions['run']> => {
    return async (
      run: { input: JsonObject; idempotencyKey: string; toolCallId: string; attempt: number },
      report: TestReport,
    ): Promise<string> => {
      const announced = durable(
        (event) =>
          event.type === 'tool_started' &&
          event.toolCallId === run.toolCallId &&
          event.attempt === run.attempt,
      )
      if (!announced) world.early.push(`${name} ${run.toolCallId}`)
      const doing = run.input['do']
      if (doing === 'hang') await new Promise(() => {})
      if (doing === 'progress') report.progress('half')
      await Promise.resolve()
      if (doing === 'defer') report.defer('job', 500)
      if (doing === 'throw') throw new Error('broken')
      if (writes) {
        world.effects.set(run.toolCallId, (world.effects.get(run.toolCallId) ?? 0) + 1)
        world.keys.add(run.idempotencyKey)
      }
      return `${name} did it`
    }
  }
  const check = (input: JsonObject): CallVerdict =>
    input['do'] === 'invalid'
      ? ({ kind: 'refuse', outcome: 'invalid_input', text: 'do: expected something else' } as const)
      : ({ kind: 'run' } as const)
  const shared = { timeoutMs: 1_000, check }
  return [
    testTool({ ...shared, name: 'read', run: body('read', false) }),
    testTool({ ...shared, name: 'write', effect: 'write', run: body('write', true) }),
    testTool({
      ...shared,
      name: 'rerunnable',
      effect: 'write',
      recovery: 'rerun',
      run: body('rerunnable', true),
    }),
    testTool({
      ...{
        ...shared,
        name: 'reconciled',
        effect: 'write',
        recovery: 'reconcile',
        run: body('reconciled', true),
      },
      reconcile: async ({ idempotencyKey }) =>
        world.keys.has(idempotencyKey)
          ? { state: 'done', outcome: 'success', content: [{ type: 'text', text: 'it was done' }] }
          : { state: 'not_done' },
    }),
    testTool({
      ...{ ...shared, name: 'asking', effect: 'write', run: body('asking', true) },
      check: (input) => (input['do'] === 'invalid' ? check(input) : { kind: 'ask' }),
    }),
  ]
}

function replyOf(step: Step | undefined, attempt: number, request: ModelRequest): ScriptedReply {
  if (step === undefined) return { text: 'The end.', usage: { inputTokens: 300, outputTokens: 50 } }
  const { text, reasoning, stopReason } = step
  const toolCalls = request.toolChoice.type === 'none' ? [] : step.calls.map(scripted)
  const fail = step.failures[attempt - 1]
  return {
    ...{ text, reasoning, toolCalls, usage: { inputTokens: 250, outputTokens: 40 * attempt } },
    ...(stopReason && { stopReason }),
    ...(fail && { fail }),
  }
}

/** The provider claims the same id for every call: ids of the ledger have to be the runtime's own. */
function scripted({ tool, behaviour }: CallPlan): { id: string; name: string; input: JsonObject | string } {
  return { id: 'call_0', name: tool, input: behaviour === 'malformed' ? '{"do":' : { do: behaviour } }
}
