import { fileURLToPath } from 'node:url'
import { agentTool, defineAgent, type Agent, type ModelRequest } from '@tallystick/core'
import { scriptedModel, testTool, type ScriptedReply } from '@tallystick/testkit'

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

/** Pays what it is asked for, after a person's approval. */
export function clerk(): Agent {
  return defineAgent({
    name: 'clerk',
    description: 'Pays.',
    instructions: '',
    model: askingOnce('clerk-model', { toolCalls: [{ name: 'pay', input: { usd: 5 } }], usage }, 'Paid.'),
    tools: [testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }), run: () => 'paid' })],
  })
}

/** Hands a transfer to the bank, which says later what became of it. */
export function teller(): Agent {
  const transfer = testTool({
    name: 'transfer',
    effect: 'write',
    run: (_call, report) => {
      report.defer('transfer-7')
      return ''
    },
  })
  return defineAgent({
    name: 'teller',
    description: 'Transfers.',
    instructions: '',
    model: askingOnce(
      'teller-model',
      { toolCalls: [{ name: 'transfer', input: {} }], usage },
      'Transferred.',
    ),
    tools: [transfer],
  })
}

/** Has the boss do it, in a run of its own. */
export function owner(): Agent {
  return defineAgent({
    name: 'owner',
    instructions: '',
    model: askingOnce(
      'owner-model',
      { toolCalls: [{ name: 'boss', input: { task: 'Pay.' } }], usage },
      'All well.',
    ),
    tools: [agentTool({ ...boss(), description: 'Has others pay.' })],
  })
}

/** Has the teller transfer, in a run of its own. */
export function banker(): Agent {
  return defineAgent({
    name: 'banker',
    instructions: '',
    model: askingOnce(
      'banker-model',
      { toolCalls: [{ name: 'teller', input: { task: 'Go.' } }], usage },
      'It is there.',
    ),
    tools: [agentTool(teller())],
  })
}

/** Has the clerk pay, in a run of its own. */
export function boss(): Agent {
  return defineAgent({
    name: 'boss',
    instructions: '',
    model: askingOnce(
      'boss-model',
      { toolCalls: [{ name: 'clerk', input: { task: 'Pay.' } }], usage },
      'All paid.',
    ),
    tools: [agentTool(clerk())],
  })
}
