// Whatever a run is given: another process that takes it up sends the same requests, it replays to itself, and its context is
// found nowhere.
import * as fc from 'fast-check'
import { expect, it, onTestFinished } from 'vitest'
import {
  type Agent,
  createRuntime,
  defineAgent,
  defineGuardrail,
  type InputMessage,
  type Ledger,
  memoryLedger,
  type Message,
  type Model,
  outputTransform,
  type RunId,
  type RunOptions,
  type RunResult,
  withRuntimeRules,
} from '@tallystick/core'
import { listReachableAgents, pickRules } from '@tallystick/core/internal'
import type { NextTurn } from '@tallystick/core/vocabulary'
import {
  manualClock,
  scriptedModel,
  seededRandom,
  testTool,
  waitUntilSettled,
  watchedLedger,
  type ScriptedModel,
} from '@tallystick/testkit'
import { exportEvents, verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { replayRun } from '@tallystick/replay'
import { tries } from '../../../scripts/testing/effort.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const marker = 'token-5f1c93'
const usage = { inputTokens: 50, outputTokens: 5 }
const steps = [
  { reasoning: 'It is about money.', toolCalls: [{ name: 'transfer_to_billing', input: {} }], usage },
  { text: 'Let me pay.', toolCalls: [{ name: 'pay', input: { euros: 1 } }], usage },
  { text: 'Paid.', usage },
]

const noted = { role: 'user', parts: [{ type: 'text', text: 'A note.' }] } as const

/** The agents as a process makes them. What they are given goes everywhere but into what they say. */
function office(model: Model, nextTurn?: NextTurn): Agent<string, { readonly token: string }> {
  type Own = { readonly token: string }
  const pay = testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: 'ask' }),
    run: ({ context }) => ((context as Own).token === marker ? 'paid' : 'refused'),
  })
  const shorter = outputTransform<Own>({
    name: 'shorter',
    unit: 'piece',
    show: (text, { context }) => (context.token === marker ? text.replaceAll('a', '') : text),
  })
  const outputStream = nextTurn && { transforms: [shorter], nextTurn }
  const guardrail = defineGuardrail({
    name: 'watch',
    on: 'input',
    check: (_input, { context }) => ((context as Own).token === marker ? 'pass' : { block: 'no token' }),
  })
  const billing = defineAgent<string, Own>({
    name: 'billing',
    instructions: ({ token }) => `Bill, in ${token.length} words at most.`,
    model,
    outputStream,
    tools: [pay],
    modelSettings: { temperature: 0.3, seed: 4 },
    prepareTurn: ({ turn }, { token }) => (turn > 1 ? { maxOutputTokens: token.length * 10 } : undefined),
    approval: ({ context }) => (context.token === marker ? 'run' : { deny: 'no token' }),
  })
  return defineAgent<string, Own>({
    name: 'desk',
    instructions: 'Greet.',
    model,
    outputStream,
    handoffs: [billing],
    prepareTurn: async ({ request: { messages } }, { token }) => {
      await Promise.resolve()
      return token === marker ? { messages: [noted, ...messages] } : undefined
    },
    guardrails: [guardrail],
  })
}

/** Rules that one run may have of its own. */
const louder = defineGuardrail({
  name: 'louder',
  on: 'input',
  check: ({ text }, { context }) =>
    (context as { readonly token: string }).token === marker
      ? { replace: `${text}!` }
      : { block: 'no token' },
})
const withNote = async (messages: readonly Message[], { token }: { readonly token: string }) =>
  token === marker ? [...messages, noted] : messages

interface Drawn {
  readonly input: string | readonly InputMessage[]
  readonly options: Omit<RunOptions, 'model'>
  readonly withModel: boolean
  readonly nextTurn: NextTurn | undefined
  readonly seed: number
}

const word = fc.stringMatching(/^[a-zé💡]{1,8}$/u)
const settings = fc.record(
  {
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    topP: fc.double({ min: 0, max: 1, noNaN: true }),
    stop: fc.array(word, { maxLength: 2 }),
    seed: fc.integer(),
    maxOutputTokens: fc.integer({ min: 1, max: 5_000 }),
    reasoningEffort: fc.constantFrom('none' as const, 'low' as const, 'max' as const),
    providerOptions: fc.constant({ scripted: { tier: 'flex' } }),
  },
  { requiredKeys: [] },
)
const conversation: fc.Arbitrary<readonly InputMessage[]> = fc
  .array(fc.record({ role: fc.constantFrom('user' as const, 'assistant' as const), content: word }), {
    maxLength: 4,
  })
  .map((before) => [...before, { role: 'user', content: 'Pay.' }])

const drawn: fc.Arbitrary<Drawn> = fc.record({
  input: fc.oneof(fc.constant('Pay.'), conversation),
  withModel: fc.boolean(),
  nextTurn: fc.constantFrom(undefined, 'written' as const, 'shown' as const),
  seed: fc.integer({ min: 1, max: 1_000_000 }),
  options: fc.record(
    {
      modelSettings: settings,
      toolChoice: fc.constantFrom('auto' as const, 'any' as const, 'none' as const),
      parallelToolCalls: fc.boolean(),
      recording: fc.record(
        {
          toolInputDeltas: fc.boolean(),
          toolProgress: fc.boolean(),
          reasoning: fc.boolean(),
          rawUsage: fc.boolean(),
          content: fc.constantFrom(undefined, 'full' as const, 'digests' as const),
          textDeltas: fc.boolean(),
        },
        { requiredKeys: ['content'] },
      ),
      limits: fc.record({ maxTurns: fc.integer({ min: 1, max: 9 }) }),
      deadline: fc.integer({ min: 1, max: 4_000_000_000 }).map((ms) => Date.UTC(2026, 0, 1) + ms),
      workflowName: word,
      traceId: word,
      groupId: word,
      tags: fc.array(word, { maxLength: 3 }),
      metadata: fc.record({ plan: word }),
      subject: word,
      sessionId: word,
      idempotencyKey: word,
      nestHandoffHistory: fc.boolean(),
      guardrails: fc.constant([louder]),
      inputFilter: fc.constant(withNote),
      tracing: fc.boolean(),
      traceContent: fc.boolean(),
    },
    { requiredKeys: ['recording'] },
  ),
})

const isDigestsOnly = ({ recording }: Drawn['options']): boolean => recording?.content === 'digests'

interface Played {
  readonly ledger: Ledger
  readonly runId: RunId
  readonly model: ScriptedModel
  /** The run's events as they are exported. */
  readonly exported: string
  readonly said: string
  readonly isSuspended: boolean
}

/** Plays a run to its end; its approval is decided by the process that began it, or by another. */
async function play(
  { input, options, withModel, nextTurn, seed }: Drawn,
  elsewhere: boolean,
): Promise<Played> {
  const clock = manualClock()
  const file = isDigestsOnly(options) ? sqliteLedger(temporaryFile()) : memoryLedger()
  onTestFinished(() => file.close())
  const { ledger, outside } = watchedLedger(file)
  const model = scriptedModel(steps, 'given')
  const own = (): Model => (withModel ? scriptedModel([], 'own') : model)
  const reported: unknown[] = []
  const hooks = { awaited: true, toolStarted: () => Promise.reject(new Error('a broken hook')) }
  const process = (agents: readonly Agent<unknown>[]) =>
    createRuntime({
      ...{ ledger, agents, models: [model], hooks },
      contextOf: () => ({ token: marker }),
      host: { clock, random: seededRandom(seed), report: (...said) => void reported.push(said.map(String)) },
    })
  const desk = office(own(), nextTurn)
  const given = { ...options, ...(withModel && { model }), context: { token: marker } }
  const begun = process([desk]).run(desk, input, given)
  const settled = <T>(promise: Promise<T>): Promise<T> => waitUntilSettled(clock, promise, outside)
  let result: RunResult = await settled(begun.result)
  const isSuspended = result.status === 'suspended'
  if (result.status === 'suspended') {
    const [approval] = result.pendingApprovals
    const run = elsewhere ? process([office(own(), nextTurn)]).resume(begun.id, pickRules(options)) : begun
    await settled(run.approve(approval!, { by: 'ada' }))
    result = await settled(run.result)
  }
  const exported = (await Array.fromAsync(exportEvents(file, begun.id))).join('\n')
  const said = [exported, JSON.stringify(result), JSON.stringify(reported)].join('\n')
  return { ledger: file, runId: begun.id, model, exported, said, isSuspended }
}

function requireSame({ divergence }: { readonly divergence?: unknown }): void {
  expect(divergence).toBeUndefined()
}

/** Nothing is left to replay, and what is left verifies. */
async function requireDigestsOnly(
  { ledger, runId, exported }: Pick<Played, 'ledger' | 'runId' | 'exported'>,
  replayed: Promise<unknown>,
): Promise<void> {
  await expect(replayed).rejects.toThrow('is redacted by the recording policy of the run')
  for (const text of ['about money', 'Let me pay', 'A note']) expect(exported).not.toContain(text)
  expect(await verifyRun(ledger, runId)).toMatchObject({ ok: true })
}

it('a run that is resumed elsewhere sends the requests of one that is not, replays, and says nothing of its context', async () => {
  let taken = 0
  let removed = 0
  await fc.assert(
    fc.asyncProperty(drawn, async (each) => {
      const here = await play(each, false)
      const there = await play(each, true)
      expect(there.model.requests).toEqual(here.model.requests)
      if (there.isSuspended) taken++
      const agents = new Map(
        listReachableAgents(office(scriptedModel([], each.withModel ? 'own' : 'given'), each.nextTurn)).map(
          (agent) => [agent.name, withRuntimeRules(agent, pickRules(each.options))],
        ),
      )
      for (const { ledger, runId, exported, said } of [here, there]) {
        expect(said).not.toContain(marker)
        const replayed = replayRun(ledger, runId, (name) => agents.get(name)!, { context: { token: marker } })
        if (isDigestsOnly(each.options)) {
          removed++
          await requireDigestsOnly({ ledger, runId, exported }, replayed)
        } else requireSame(await replayed)
      }
    }),
    { numRuns: tries(100) },
  )
  expect(taken).toBeGreaterThan(0)
  expect(removed).toBeGreaterThan(0)
})
