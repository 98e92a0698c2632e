import { readFile } from 'node:fs/promises'
import * as fc from 'fast-check'
import { defineAgent, handoff, agentTool, type Tool } from '@tallystick/core'
import { propertyTest, scriptedModel, testTool } from '@tallystick/testkit'
import { randomTool } from '@tallystick/testkit/random'
import { expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'

const model = scriptedModel([])
const sound = { name: 'support', instructions: 'Help.', model } as const

/** A tool that pays, by the key of its call or not. */
function createRefund(payments: Map<string, number>, byKey: boolean): Tool {
  return testTool({
    name: 'refund',
    effect: 'write',
    recovery: 'rerun',
    run: ({ idempotencyKey }) => {
      payments.set(byKey ? idempotencyKey : `payment ${payments.size}`, 80)
      return 'Paid.'
    },
  })
}

const findFailure = async (test: Promise<unknown>): Promise<string> =>
  await test.then(
    () => 'nothing was found',
    (error: Error) => error.message,
  )

it('plays a sound agent through trouble, and reports what it played', async () => {
  const payments = new Map<string, number>()
  const agent = defineAgent({
    ...sound,
    tools: [createRefund(payments, true), testTool({ name: 'look_up' })],
  })
  const effects = () => payments.size
  const report = await propertyTest(agent, {
    tools: { refund: { effects } },
    runs: tries(1_000),
    seed: fc.readConfigureGlobal().seed ?? 1,
  })
  expect(report.crashes).toBeGreaterThan(10)
  expect(Object.keys(report.endings)).toEqual(expect.arrayContaining(['answered', 'cancelled', 'turn_limit']))
  expect(report.calls['refund']).toBeGreaterThan(20)
})

it('plays an agent whose calls several people have to approve', async () => {
  const approvers = [{ count: 2, roles: ['finance'] }]
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask', approvers }) })
  const report = await propertyTest(defineAgent({ ...sound, tools: [pay] }), { runs: tries(300), seed: 1 })
  expect(report.calls['pay']).toBeGreaterThan(5)
})

it('finds a tool that writes twice on a rerun, and finds the same again by its seed and path', async () => {
  const payments = new Map<string, number>()
  const agent = defineAgent({ ...sound, tools: [createRefund(payments, false)] })
  const options = { tools: { refund: { effects: () => payments.size } } }
  const message = await findFailure(propertyTest(agent, { ...options, seed: 7 }))
  expect(message).toMatch(
    /^Not so: a call of a tool takes effect once at most, however often it is started\.\n/,
  )
  expect(message).toMatch(/process \d dies at its append \d+/)
  expect(message).toMatch(/> +\d+ tool_started refund.*\n +\^ refund took effect \d+ times in/)
  const [, path = ''] = /path: '([\d:]+)'/.exec(message) ?? []
  const again = await findFailure(propertyTest(agent, { ...options, seed: 7, path, shrinkMs: 0 }))
  const withoutIds = (text: string) => text.replaceAll(/[0-9a-f]{8}-?[0-9a-f]{4}[-0-9a-f]+/g, 'id')
  expect(withoutIds(again).slice(again.indexOf('The example'))).toBe(
    withoutIds(message).slice(message.indexOf('The example')),
  )
})

it('finds what a law of the user forbids, with the words of the law', async () => {
  const agent = defineAgent({ ...sound, tools: [testTool({ name: 'refund', effect: 'write' })] })
  const message = await findFailure(
    propertyTest(agent, {
      seed: 1,
      tools: { refund: { inputs: fc.record({ euros: fc.integer({ min: 0, max: 200 }) }) } },
      laws: {
        'nobody gets more than 100 euros': ({ calls }) =>
          calls.every(({ input }) => Number(input['euros'] ?? 0) <= 100),
      },
    }),
  )
  expect(message).toMatch(/^Not so: nobody gets more than 100 euros\.\n/)
  expect(message).toContain('the model calls refund {"euros":101}')
})

it('finds an agent that never stops', async () => {
  const limits = { maxTurns: 1_000_000, maxRepeats: 1_000_000 }
  const agent = defineAgent({ ...sound, tools: [testTool({ name: 'look_up' })], limits })
  const message = await findFailure(propertyTest(agent, { seed: 1 }))
  expect(message).toMatch(/^Not so: a run of an agent ends, whatever its model says\.\n/)
  expect(message).toContain('and begins anew, without end')
})

it('reaches agents that are handed over to, and agents that are tools', async () => {
  const helper = defineAgent({
    ...sound,
    name: 'helper',
    description: 'Helps.',
    tools: [testTool({ name: 'inner' })],
  })
  const second = defineAgent({ ...sound, name: 'second', tools: [testTool({ name: 'later' })] })
  const agent = defineAgent({ ...sound, tools: [agentTool(helper)], handoffs: [handoff(second)] })
  const { calls } = await propertyTest(agent, { seed: 2, runs: 100 })
  expect(Object.keys(calls).toSorted()).toEqual(['helper', 'inner', 'later', 'transfer_to_second'])
})

it('does not blame the runtime for what tools do wrong', async () => {
  await fc.assert(
    fc.asyncProperty(randomTool('any'), async (tool) => {
      const agent = () => defineAgent({ ...sound, tools: [tool] })
      const message = await findFailure(
        propertyTest(agent, { seed: 1, runs: 3, patienceMs: 20, shrinkMs: 0 }),
      )
      expect(message).toMatch(/^nothing was found|^Not so: (?:a call of a tool|a tool)/)
    }),
    { numRuns: tries(45) },
  )
})

it('says by seed and example what kept a run from being played', async () => {
  const agent = defineAgent({ ...sound, tools: [testTool({ name: 'look_up' })] })
  const effects = () => {
    throw new Error('the database is gone')
  }
  const message = await findFailure(propertyTest(agent, { tools: { look_up: { effects } }, seed: 3 }))
  expect(message).toMatch(/^Not so: a run of an agent can be played\.\n +found: +the database is gone\.\n/)
  expect(message).toMatch(/again: +seed: 3, path: '[\d:]+'/)
})

it('lets time stand still while a tool, or a policy, is at work outside', async () => {
  const asked = new Set<Promise<unknown>>()
  const readManifest = async (): Promise<string> =>
    await readFile(new URL('../package.json', import.meta.url), 'utf8')
  const agent = defineAgent({
    ...sound,
    tools: [testTool({ name: 'look_up', timeoutMs: 1, run: readManifest })],
    approval: async (): Promise<'run'> => {
      const answer = readManifest()
      asked.add(answer)
      await answer
      asked.delete(answer)
      return 'run'
    },
  })
  const outcomes = new Set<string>()
  await propertyTest(agent, {
    ...{ runs: 10, seed: 1 },
    outside: () => (asked.size > 0 ? Promise.race(asked) : undefined),
    laws: {
      'no call takes too long': ({ calls }) => {
        for (const { outcome } of calls) outcomes.add(outcome)
      },
    },
  })
  expect(outcomes).toContain('success')
  expect(outcomes).not.toContain('timed_out')
})

it('refuses a tool that the agent does not have', async () => {
  const agent = defineAgent({ ...sound, tools: [testTool({ name: 'look_up' })] })
  await expect(propertyTest(agent, { tools: { lookup: {} } })).rejects.toThrow(
    'tools names lookup, and the agent support has no such tool. Its tools: look_up.',
  )
})
