import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  agentTool,
  defineAgent,
  memoryLedger,
  type Agent,
  type Limits,
  type Prices,
  type Usage,
} from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { type Price } from '@tallystick/core/vocabulary'
import {
  checkBudgets,
  checkLaws,
  manualClock,
  scriptedModel,
  seededRandom,
  simulate,
  testTool,
  type ScriptedModel,
  type ScriptedReply,
} from '@tallystick/testkit'
import { newTask, tries } from '../../../scripts/testing/effort.ts'

const numRuns = tries(150)

const limits: fc.Arbitrary<Limits> = fc.record(
  {
    maxTurns: fc.integer({ min: 0, max: 14 }),
    maxToolCalls: fc.integer({ min: 0, max: 12 }),
    maxTotalTokens: fc.integer({ min: 0, max: 9_000 }),
    maxTotalInputTokens: fc.integer({ min: 0, max: 6_000 }),
    maxTotalOutputTokens: fc.integer({ min: 0, max: 3_000 }),
    maxCostUsd: fc.double({ min: 0, max: 0.2, noNaN: true }),
    maxDurationMs: fc.integer({ min: 0, max: 6_000 }),
    onLimit: fc.constantFrom('finalize', 'stop'),
  },
  { requiredKeys: [] },
)

const tree = fc.record({
  seed: fc.integer({ min: 0, max: 0xffffffff }),
  depth: fc.integer({ min: 1, max: 3 }),
  limits: fc.array(limits, { minLength: 4, maxLength: 4 }),
  rates: fc.array(fc.constantFrom(0, 1, 15, 900), { minLength: 8, maxLength: 8 }),
  honest: fc.boolean(),
  cancelAtSeq: fc.option(fc.integer({ min: 3, max: 60 }), { nil: undefined, freq: 4 }),
  crashes: fc.array(fc.record({ append: fc.integer({ min: 1, max: 20 }), stored: fc.boolean() }), {
    maxLength: 2,
  }),
})
type Tree = typeof tree extends fc.Arbitrary<infer T> ? T : never

const priceAt = ({ rates }: Tree, index: number): Price => ({
  ...{ inputUsd: rates[index] ?? 1, outputUsd: rates[index + 1] ?? 1 },
  cacheWriteUsd: rates[index + 2] ?? 1,
})

/** What a model reports: within what it was allowed, or whatever comes to its mind. */
function reportOf(random: () => number, allowed: number, honest: boolean): Usage | undefined {
  const kind = Math.floor(random() * (honest ? 2 : 6))
  const outputTokens = Math.floor(random() * Math.min(allowed, 400))
  if (kind === 0) return { inputTokens: 5 + Math.floor(random() * 20), outputTokens }
  if (kind === 1) return undefined
  if (kind === 2) return { inputTokens: -1_000, outputTokens }
  if (kind === 3) return { inputTokens: 0, outputTokens: 0 }
  if (kind === 4) return { inputTokens: 1e308, outputTokens: Math.floor(random() * 5_000) }
  return { inputTokens: Math.floor(random() * 5_000), outputTokens, cacheWriteTokens: 30 }
}

function modelOf(plan: Tree, random: () => number, modelId: string, tools: readonly string[]): ScriptedModel {
  const step = (maxOutputTokens: number, canAsk: boolean): ScriptedReply => {
    const usage = reportOf(random, maxOutputTokens, plan.honest)
    const reply = { text: 'word '.repeat(Math.floor(random() * 9)), ...(usage && { usage }) }
    const dice = random()
    if (dice < 0.12) return { ...reply, fail: dice < 0.06 ? 'truncated' : 'overloaded' }
    if (dice < 0.14) return { ...reply, hang: true }
    if (!canAsk || dice < 0.35) return { ...reply, text: 'Done.' }
    const names = Array.from(
      { length: 1 + Math.floor(random() * 4) },
      () => tools[Math.floor(random() * tools.length)] ?? 'look',
    )
    return { ...reply, toolCalls: names.map((name) => ({ name, input: { task: `Work ${random()}.` } })) }
  }
  return scriptedModel(
    Array.from(
      { length: 600 },
      () =>
        ({ maxOutputTokens = 400, toolChoice, tools: offered }) =>
          step(maxOutputTokens, toolChoice.type !== 'none' && offered.length > 0),
    ),
    modelId,
  )
}

function agentAt(plan: Tree, random: () => number, level: number): Agent<unknown> {
  const below = level < plan.depth ? agentAt(plan, random, level + 1) : undefined
  const own = [
    testTool({ name: 'look', run: () => `seen ${random()}` }),
    testTool({ name: 'save', effect: 'write', run: () => `saved ${random()}` }),
  ]
  const children = below
    ? [agentTool(below, { name: 'read_child', effect: 'read' }), agentTool(below, { name: 'write_child' })]
    : []
  const tools = [...own, ...children]
  const names = tools.map(({ name }) => name)
  return defineAgent({
    ...{ name: `level ${level}`, description: 'Works.', instructions: 'Work.', tools },
    model: modelOf(plan, random, `cheap-${level % 2}`, names),
    fallbacks: [modelOf(plan, random, `dear-${level % 2}`, names)],
    timeouts: { idleMs: 500 },
    limits: { maxRepeats: 50, graceMs: 200, ...plan.limits[level] },
  })
}

it('law 9: over random trees of agents with prices, failures and reports that lie, nothing passes a limit', async () => {
  await fc.assert(
    fc
      .asyncProperty(tree, async (plan) => {
        const random = seededRandom(plan.seed)
        const prices: Prices = Object.fromEntries(
          ['cheap-0', 'cheap-1', 'dear-0', 'dear-1'].map((id, index) => [id, priceAt(plan, index)]),
        )
        const { events, others, result } = await simulate({
          ...{ ledger: memoryLedger(), clock: manualClock(), random, input: 'Go.', prices },
          ...{ crashes: plan.crashes, agentOf: () => agentAt(plan, random, 0) },
          ...(plan.cancelAtSeq !== undefined && { cancelAtSeq: plan.cancelAtSeq }),
        })
        const all = [events, ...others]
        expect(checkBudgets(all)).toEqual([])
        expect(all.flatMap(checkLaws)).toEqual([])
        for (const run of all) {
          expect(auditAll(run)?.phase).toBe('done')
        }
        expect(result.status).toBe('done')
      })
      .beforeEach(newTask),
    { numRuns },
  )
})
