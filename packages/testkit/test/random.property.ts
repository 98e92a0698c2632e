import * as fc from 'fast-check'
import { defineAgent } from '@tallystick/core'
import { checkBudgets, checkLaws, scriptedModel, seededRandom, simulate } from '@tallystick/testkit'
import {
  randomClock,
  randomCrash,
  randomLedger,
  randomLimits,
  randomPeople,
  randomScript,
  randomTool,
} from '@tallystick/testkit/random'
import { expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'

const prices = { 'scripted-1': { inputUsd: 3, outputUsd: 15, source: 'test' } }

it('keeps the laws under any tool, model, people, clock, ledger and crash', async () => {
  const input = fc.constantFrom({}, { task: 'a' })
  const world = fc.record({
    script: randomScript({ one: input, other: input }),
    tools: fc.tuple(randomTool('one'), randomTool('other')),
    limits: randomLimits,
    people: randomPeople,
    clock: randomClock,
    ledger: randomLedger,
    crashes: fc.array(randomCrash, { maxLength: 2 }),
  })
  const outcomes = new Set<string>()
  const failures = new Set<string>()
  await fc.assert(
    fc.asyncProperty(world, async ({ script, tools, limits, people, ...rest }) => {
      let calls = 0
      const next = () => script[calls++] ?? { text: 'The end.' }
      const { cancelAtSeq, inputs } = people
      const { events, others } = await simulate({
        ...rest,
        ...{ inputs, prices, random: seededRandom(1) },
        ...(cancelAtSeq !== undefined && { cancelAtSeq }),
        agentOf: () => {
          const model = scriptedModel(Array.from({ length: 200 }, () => next))
          return defineAgent({ name: 'any', instructions: 'Go.', model, tools, limits })
        },
      })
      for (const event of events) {
        if (event.type === 'tool_result') outcomes.add(event.outcome)
        if (event.type === 'model_stream_failed') failures.add(event.failure.class)
      }
      expect([events, ...others].flatMap(checkLaws)).toEqual([])
      expect(checkBudgets([events, ...others])).toEqual([])
    }),
    { numRuns: tries(3_000) },
  )
  expect([...outcomes]).toEqual(expect.arrayContaining(['success', 'failed', 'cancelled', 'unknown_tool']))
  expect(failures.size).toBeGreaterThan(3)
})
