// The agent that all runners test.
import { defineAgent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'

const refunds = new Map<string, number>()

export const refund = testTool({
  name: 'refund',
  effect: 'write',
  recovery: 'rerun',
  run: ({ input, idempotencyKey }) => {
    refunds.set(idempotencyKey, Number(input['euros']))
    return 'The money is paid back.'
  },
})

export const support = defineAgent({
  name: 'support',
  instructions: 'Help.',
  model: scriptedModel([]),
  tools: [refund],
})

export const inputs = [{ order: 'A-7', euros: 80 }]
export const effects = (): number => refunds.size
