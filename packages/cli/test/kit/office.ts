import { fileURLToPath } from 'node:url'
import { agentTool, defineAgent, type Agent, type ModelRequest } from '@tallystick/core'
import { scriptedModel, testTool, type ScriptedReply } from '@tallystick/core/testing'

/** The configuration that gives the boss, and with it the clerk. */
export const officeConfig: string = fileURLToPath(import.meta.resolve('./office.config.ts'))

/** Asks for one call, and then says what became of it, in whichever process it is asked. */
const askingOnce = (modelId: string, call: ScriptedReply, answer: string): ReturnType<typeof scriptedModel> =>
  scriptedModel(
    Array.from(
      { length: 9 },
      () =>
        ({ messages }: ModelRequest): ScriptedReply =>
          messages.at(-1)?.role === 'user' ? call : { text: answer, usage },
    ),
    modelId,
  )

const usage = { inputTokens: 10, outputTokens: 1 }

/** Pays what it is told to, which somebody has to approve. */
export function clerk(): Agent {
  return defineAgent({
    ...{ name: 'clerk', description: 'Pays.', instructions: '' },
    model: askingOnce('clerk-model', { toolCalls: [{ name: 'pay', input: { usd: 5 } }], usage }, 'Paid.'),
    tools: [testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }), run: () => 'paid' })],
  })
}

/** Has the clerk pay, in a run of its own. */
export function boss(): Agent {
  return defineAgent({
    ...{ name: 'boss', instructions: '' },
    model: askingOnce(
      'boss-model',
      { toolCalls: [{ name: 'clerk', input: { task: 'Pay.' } }], usage },
      'All paid.',
    ),
    tools: [agentTool(clerk())],
  })
}
