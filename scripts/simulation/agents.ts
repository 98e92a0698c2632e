import { NEVER } from 'rxjs'
import {
  type Agent,
  agentTool,
  defineAgent,
  type Guardrail,
  handBack,
  handoff,
  joinText,
  type Limits,
  type Message,
  type Model,
  type ModelRequest,
  type Tool,
} from '@tallystick/core'
import { type FleetStart, type ScriptedReply, scriptedModel, type Site, testTool } from '@tallystick/testkit'
import type {
  Approvers,
  CallVerdict,
  FailureClass,
  JsonObject,
  Random,
  RetryPolicy,
  StopReason,
} from '@tallystick/core/vocabulary'

// The agents of the project's own simulation. What a run does is written in its input, so that whichever process drives it plays on.

/** What a call asks of its tool. */
type Behaviour = 'succeed' | 'throw' | 'flake' | 'hang' | 'progress' | 'defer' | 'invalid' | 'malformed'

interface PlayedCall {
  readonly tool: string
  readonly do: Behaviour
  /** How long the tool works, in milliseconds. */
  readonly ms: number
}

/** One reply of the model. */
interface PlayedStep {
  readonly text: string
  readonly reasoning?: string
  readonly calls: readonly PlayedCall[]
  readonly stop?: StopReason
  readonly unreported?: true
}

const toolNames: readonly string[] = [
  ...[
    'read',
    'look',
    'write',
    'pay',
    'redo',
    'sync',
    'tried',
    'tried_write',
    'tried_redo',
    'later',
    'deaf',
    'asked_again',
    'asked_again',
    'sign',
    'sign',
    'wire',
    'helper',
    'helper',
  ],
  ...['dig', 'build', 'haul', 'rebuild', 'rebuild'],
  ...['transfer_to_second', 'transfer_to_player', 'transfer_to_user', 'no_such_tool'],
]
const behaviours: readonly Behaviour[] = [
  'throw',
  'flake',
  'hang',
  'progress',
  'defer',
  'invalid',
  'malformed',
]
const agentNames: readonly string[] = ['player', 'guarded', 'brief', 'typed', 'careful']

/** The prices of the models, in US dollars per million tokens. */
export const prices = {
  'scripted-1': { inputUsd: 3, outputUsd: 15, source: 'simulated' },
  'scripted-2': { inputUsd: 1, outputUsd: 5, source: 'simulated' },
}

/** Draws how a run begins, and all that it is to do. */
export function drawStart(random: Random, ordinal: number): FleetStart {
  const below = (end: number): number => Math.floor(random() * end)
  const pick = <T>(among: readonly T[]): T => among[below(among.length)] as T
  let last: PlayedCall | undefined
  const drawCall = (): PlayedCall => {
    const call: PlayedCall = {
      tool: pick(toolNames),
      do: random() < 0.75 ? 'succeed' : pick(behaviours),
      ms: random() < 0.8 ? below(400) : below(20_000),
    }
    // Some are made again, for approvals that also let equal ones through.
    return (last = last && random() < 0.15 ? { ...last } : call)
  }
  const steps = Array.from({ length: 1 + below(5) }, (): PlayedStep => {
    const chance = random()
    return {
      text: pick(['', 'Let me see.', '{"guarded":false}', 'Straße 💡']),
      calls: Array.from({ length: below(4) }, drawCall),
      ...(random() < 0.2 && { reasoning: 'Hm.' }),
      ...(chance < 0.06 && { stop: pick<StopReason>(['max_tokens', 'refused', 'paused', 'other', 'end']) }),
      ...(random() < 0.1 && { unreported: true as const }),
    }
  })
  const isLimited = random() < 0.35
  const some = <T>(value: T): T | undefined => (isLimited && random() < 0.2 ? value : undefined)
  const limits: { readonly [Name in keyof Limits]: Limits[Name] | undefined } = {
    maxTurns: some(below(5)),
    maxToolCalls: some(below(6)),
    maxToolCallsPerTurn: some(1 + below(2)),
    maxTotalTokens: some(below(3_000)),
    maxTotalOutputTokens: some(below(400)),
    maxCostUsd: some(random() * 0.02),
    maxDurationMs: some(below(40_000)),
    maxApprovalMs: some(1 + below(20_000)),
    maxRepeats: some(1 + below(2)),
    maxConcurrency: some(1 + below(2)),
    maxCallsByTool: some(pick([{ read: 1 }, { write: 0, look: 1 }])),
    onLimit: pick(['finalize', 'stop', 'ask', undefined]),
  }
  const owner = `owner ${ordinal}`
  return {
    // Some come by a schedule.
    ...(ordinal === 5 && { afterMs: 20_000 }),
    agent: pick(agentNames),
    input: `Play ${ordinal}: ${JSON.stringify(steps)}`,
    options: {
      limits,
      ...(random() < 0.5 && { owner, context: { owner } }),
      ...(random() < 0.4 && { subject: pick(['customer 1', 'customer 2']) }),
    },
  }
}

const retry: RetryPolicy = { maxAttempts: 3, baseMs: 70, capMs: 2_000, maxRetryAfterMs: 60_000 }

/** The time limit of each tool, in milliseconds. */
const timeoutMs = 8_000

/** The tool without the signal that tells it to stop. */
function withoutSignal(tool: Tool): Tool {
  return { ...tool, run: (call) => tool.run({ ...call, cancelled$: NEVER }) }
}

/** The tools of a process. */
export function createTools(site: Site): readonly Tool[] {
  const check = (input: JsonObject): CallVerdict =>
    input['do'] === 'invalid'
      ? { kind: 'refuse', outcome: 'invalid_input', text: 'do: expected something else' }
      : { kind: 'run' }
  const ask = (input: JsonObject): CallVerdict => (input['do'] === 'invalid' ? check(input) : { kind: 'ask' })
  const askFrom =
    (demand: Approvers) =>
    (input: JsonObject): CallVerdict =>
      input['do'] === 'invalid' ? check(input) : { kind: 'ask', approvers: [demand] }
  const tool = (name: string, options: Partial<Parameters<typeof testTool>[0]> = {}): Tool =>
    testTool({
      name,
      timeoutMs,
      check,
      ...options,
      run: async (run, report) => {
        const { input, idempotencyKey, attempt, runId } = run
        const context = run.context as { readonly owner?: string } | undefined
        if (context !== undefined && context.owner !== site.ownerOf(runId))
          site.fault(`${name} of run ${runId} was lent the context of ${context.owner}`)
        const ms = Number(input['ms'] ?? 0)
        // Given up at its time limit, the first attempt goes on while the second one is at work.
        await site.sleep(name === 'deaf' && attempt === 1 ? timeoutMs + 50 + ms / 2 : ms)
        const doing = input['do']
        if (doing === 'hang') await new Promise(() => {})
        if (doing === 'progress' || name === 'dig' || name === 'rebuild') {
          report.progress('half')
          await site.sleep(ms)
        }
        if (doing === 'throw') throw new Error('broken')
        if (doing === 'flake' && attempt === 1) throw new Error('busy')
        site.outside.set(idempotencyKey, attempt)
        if (doing === 'defer' || name === 'later') report.defer('job', 40_000)
        return `${name} did it for ${idempotencyKey.slice(-12)}`
      },
    })
  const write = { effect: 'write' } as const
  return [
    tool('read'),
    tool('look', { check: ask }),
    tool('write', write),
    tool('pay', { ...write, check: ask }),
    tool('redo', { ...write, recovery: 'rerun' }),
    tool('sync', {
      ...write,
      recovery: 'reconcile',
      reconcile: async ({ idempotencyKey }) =>
        site.outside.has(idempotencyKey)
          ? { state: 'done', outcome: 'success', content: [{ type: 'text', text: 'it was done' }] }
          : { state: site.random() < 0.3 ? 'unknown' : 'not_done' },
    }),
    tool('asked_again', { ...write, check: ask, recovery: 'ask' }),
    tool('sign', { ...write, check: askFrom({ roles: ['clerk', 'finance'] }) }),
    tool('wire', { ...write, check: askFrom({ count: 2, roles: ['finance'] }) }),
    tool('tried', { retry }),
    tool('tried_write', { ...write, retry }),
    tool('tried_redo', {
      ...write,
      retry,
      recovery: 'rerun',
      retryAfterMs: () => (site.random() < 0.3 ? 9_000 : 100),
    }),
    tool('later', write),
    { ...tool('dig'), background: 'wait' },
    { ...tool('build', write), background: 'leave' },
    { ...tool('haul', { ...write, check: ask }), background: 'wait' },
    { ...tool('rebuild', { ...write, recovery: 'rerun' }), background: 'wait' },
    withoutSignal(tool('deaf', { retry })),
  ]
}

const failures: readonly FailureClass[] = [
  ...(['overloaded', 'context_overflow', 'network', 'truncated', 'rate_limited', 'timeout'] as const),
  ...(['server', 'interrupted', 'authentication'] as const),
]

/** A model that plays what the input of the run says, and fails now and then. */
function createModel(site: Site, modelId = 'scripted-1'): Model {
  const play = (request: ModelRequest): ScriptedReply => {
    const chance = site.random()
    const fail = chance < 0.12 ? failures[Math.floor(site.random() ** 2 * failures.length)] : undefined
    const reply = replyTo(request)
    return {
      ...reply,
      ...(fail && { fail }),
      ...(fail === 'rate_limited' && { retryAfterMs: site.random() < 0.3 ? 30_000 : 300 }),
      ...(chance > 0.99 && { hang: true }),
    }
  }
  const named = scriptedModel([], modelId)
  return site.model({
    ...named,
    stream: (request, context) => scriptedModel([play], modelId).stream(request, context),
  })
}

/** Where a conversation stands: what it plays, and how many replies of it there are. */
function findPlace(messages: readonly Message[]): { readonly text: string; readonly turn: number } {
  const told = messages.findLastIndex(
    (message) => message.role === 'user' && /\bPlay \d+: \[/.test(joinText(message.parts)),
  )
  const message = messages[told]
  const text = message?.role === 'user' ? joinText(message.parts) : 'Play 0: []'
  const before = Number(/^(\d+) replies before/.exec(text)?.[1] ?? 0)
  return { text, turn: before + messages.slice(told).filter(({ role }) => role === 'assistant').length }
}

/** After so many turns of a run its model calls no more tools: a summary forgets how far it had come, and so it may begin anew. */
const maxTurns = 30

/** The turn of the last call that has a result. */
function findLastTurn(messages: readonly Message[]): number {
  const results = messages.findLast(({ role }) => role === 'tool')
  const { toolCallId = '' } = results?.role === 'tool' ? (results.results.at(-1) ?? {}) : {}
  return Number(/_(\d+)_\d+_\d+$/.exec(toolCallId)?.[1] ?? 0)
}

function replyTo({ messages, toolChoice }: ModelRequest): ScriptedReply {
  const { text, turn } = findPlace(messages)
  const steps = findLastTurn(messages) < maxTurns ? readSteps(text) : []
  const step = steps[turn]
  const usage = { inputTokens: 250, outputTokens: 40 }
  if (step === undefined) return { text: turn > 12 ? 'Enough.' : '{"guarded":true}', usage }
  const calls = toolChoice.type === 'none' ? [] : step.calls
  return {
    text: step.text,
    reasoning: step.reasoning,
    toolCalls: calls.map((call) => ({
      id: 'call_0',
      name: call.tool,
      input: call.do === 'malformed' ? '{"do":' : toInput(call),
    })),
    ...(!step.unreported && { usage }),
    ...(step.stop && { stopReason: step.stop }),
    ...(step.stop === 'refused' && step.text !== '' && { refusal: { leaveOut: true, askAnother: true } }),
  }
}

/** A helper has a task to play itself, without helpers of its own. */
function toInput({ tool, ...call }: PlayedCall): JsonObject {
  if (tool !== 'helper') return { ...call }
  const steps: readonly PlayedStep[] = [
    {
      text: '',
      calls: [
        {
          tool: call.do === 'hang' ? 'pay' : 'write',
          do: call.do === 'defer' ? 'defer' : 'succeed',
          ms: call.ms,
        },
      ],
    },
  ]
  return call.do === 'invalid' ? { task: 7 } : { task: `Play 0: ${JSON.stringify(steps)}` }
}

function readSteps(text: string): readonly PlayedStep[] {
  const found = /\bPlay \d+: (\[.*\])/s.exec(text)?.[1]
  try {
    return found === undefined ? [] : (JSON.parse(found) as readonly PlayedStep[])
  } catch {
    // A guardrail or a person has changed it.
    return []
  }
}

function createGuardrails(site: Site): readonly Guardrail[] {
  const verdict = async <T>(
    replacement: T,
  ): Promise<'pass' | { record: string } | { block: string } | { replace: T }> => {
    await site.sleep(5 + site.random() * 200)
    const chance = site.random()
    if (chance < 0.03) throw new Error('a broken guardrail')
    if (chance < 0.06) return { block: 'blocked' }
    if (chance < 0.2) return { record: 'seen' }
    return chance < 0.3 ? { replace: replacement } : 'pass'
  }
  return [
    { name: 'before', on: 'input', timeoutMs: 500, check: () => verdict('Play 0: []') },
    { name: 'beside', on: 'input', beside: true, timeoutMs: 500, check: () => verdict('Play 0: []') },
    { name: 'answer', on: 'output', timeoutMs: 500, check: () => verdict('{"guarded":true}') },
    {
      name: 'call',
      on: 'tool_input',
      timeoutMs: 500,
      check: () => verdict<JsonObject>({ do: 'succeed', ms: 1 }),
    },
    { name: 'result', on: 'tool_output', timeoutMs: 500, check: () => verdict('guarded') },
  ]
}

/** The agents of a process. */
export function createAgents(site: Site, tools: readonly Tool[]): readonly Agent<unknown>[] {
  const instructions = (_context: unknown, state?: { readonly runId: string }): string =>
    `You play run ${state?.runId ?? ''}.`
  const helper = defineAgent({
    name: 'helper',
    description: 'Helps.',
    instructions,
    model: createModel(site),
    tools,
    timeouts: { idleMs: 20_000 },
  })
  const shared = {
    instructions,
    model: createModel(site),
    tools: [...tools, agentTool(helper)],
    timeouts: { idleMs: 20_000 },
    retry: { maxAttempts: 4, baseMs: 100, capMs: 5_000, maxRetryAfterMs: 60_000 },
  }
  const second: Agent<unknown> = defineAgent({ ...shared, name: 'second', handoffs: () => [handoff(player)] })
  const player: Agent<unknown> = defineAgent({
    ...shared,
    name: 'player',
    handoffs: [second, handBack('user', { description: 'Gives up.' })],
  })
  const guarded = defineAgent({ ...shared, name: 'guarded', guardrails: createGuardrails(site) })
  const brief = defineAgent({
    ...shared,
    name: 'brief',
    compaction: {
      maxContextTokens: 200,
      keepMessages: 2,
      summarize: (messages) => {
        const { text, turn } = findPlace(messages)
        return `${turn} replies before. ${text.replace(/^\d+ replies before\. /, '')}`
      },
    },
  })
  const typed = defineAgent({
    ...shared,
    name: 'typed',
    output: { type: 'object', properties: { guarded: { type: 'boolean' } }, required: ['guarded'] },
    fallbacks: [createModel(site, 'scripted-2')],
    compaction: { maxContextTokens: 400, keepMessages: 3, summarize: createModel(site, 'scripted-2') },
  })
  const careful = defineAgent({
    ...shared,
    name: 'careful',
    async prepareTurn() {
      await site.sleep(site.random() ** 2 * 8_000)
      return site.random() < 0.3 ? { maxOutputTokens: 1_000 } : undefined
    },
  })
  return [player, second, helper, guarded, brief, typed, careful]
}

/** The agents for replays, which call no model and run no tool: what their code answers by itself is asked again. */
export function createReplayAgents(): (name: string) => Agent<unknown> {
  const never = new Promise<never>(() => {})
  const site = {
    random: () => 0.5,
    sleep: () => never,
    fault: () => {},
    outside: new Map(),
    ownerOf: () => undefined,
    model: (model: Model) => model,
  } as unknown as Site
  const agents = createAgents(site, createTools(site))
  return (name) => agents.find((agent) => agent.name === name) as Agent<unknown>
}
