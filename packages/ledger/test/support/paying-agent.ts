import { defineAgent, type Agent, type RunId } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'

/** An agent that asks a person before it pays, once a run; `pay` is the world outside. */
export function payingAgent(pay: (runId: RunId) => void): Agent {
  const tool = testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: 'ask' }),
    run: ({ runId }) => {
      pay(runId)
      return 'paid'
    },
  })
  // Each run is at its first step or after it, whichever process it is in.
  const steps = Array.from(
    { length: 100 },
    () => (request: { readonly messages: readonly unknown[] }) =>
      request.messages.length === 1 ? { toolCalls: [{ name: 'pay', input: {} }] } : { text: 'Paid.' },
  )
  return defineAgent({ name: 'payer', instructions: '', model: scriptedModel(steps), tools: [tool] })
}
