import { expect, it } from 'vitest'
import { defineGuardrail, type RunState } from '@tallystick/core'
import { readMessages } from '@tallystick/core/internal'
import { evolve } from '@tallystick/core/machine'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage } from './stage.ts'

it('a guardrail that looks while a model sums up looks again at the places that messages have then', async () => {
  const usage = { inputTokens: 900, outputTokens: 1 }
  const [summing, looking] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let looks = 0
  const set = stage({
    steps: [
      ...Array.from({ length: 3 }, () => ({ toolCalls: [{ name: 'look', input: {} }], usage })),
      { text: 'Done.', usage },
      { text: 'Done.', usage },
    ],
    tools: [testTool({ name: 'look' })],
    compaction: {
      ...{ maxContextTokens: 600, keepMessages: 1 },
      summarize: scriptedModel(
        Array.from({ length: 9 }, () => ({ text: 'They looked.', until: summing.promise })),
        'sums-up',
      ),
    },
    guardrails: [
      defineGuardrail({
        name: 'cards',
        on: 'input',
        beside: true,
        check: async ({ text }) => {
          if (!text.includes('4111')) return 'pass'
          // The first check ends when the summary is recorded.
          if (++looks === 1) await looking.promise
          return { replace: [{ type: 'text', text: 'Card ****.' }] }
        },
      }),
    ],
  })
  const run = set.start('Look around.')
  let isSaid = false
  run.events$.subscribe(({ type }) => {
    if (type === 'compaction_started' && !isSaid) {
      isSaid = true
      void run.steer('Card 4111.')
    }
    if (type === 'input_settled') summing.resolve()
    if (type === 'context_compacted') looking.resolve()
  })
  const { reason } = await set.waitUntilSettled(run.result)
  const events = checkedRun(await set.eventsOf(run))
  const [compacted] = ofType(events, 'context_compacted')
  const [settled] = ofType(events, 'input_settled')
  const [tripped] = ofType(events, 'guardrail_tripped')
  // The input came into the history while the summary was written.
  expect(settled?.seq).toBeLessThan(compacted?.seq ?? 0)
  expect(tripped?.seq).toBeGreaterThan(compacted?.seq ?? Infinity)
  expect([reason, looks]).toEqual(['answered', 2])
  const then = events.slice(0, tripped?.seq).reduce<RunState | undefined>(evolve, undefined)
  const seen = readMessages(then!.history)[tripped?.index ?? -1]
  expect(seen).toEqual({ role: 'user', parts: [{ type: 'text', text: 'Card ****.' }] })
  expect(JSON.stringify(readMessages(then!.history))).not.toContain('4111')
})
