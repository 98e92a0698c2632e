// Runs that continue from what a provider keeps: each model that they may call has to be able to.
import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type AgentOptions,
  type Model,
  type RunOptions,
} from '@tallystick/core'
import { manualClock, scriptedModel, waitUntilSettled } from '@tallystick/testkit'
import { ofType, recorded } from './stage.ts'

const keeping = (id: string): Model => ({ ...scriptedModel([{ text: 'Well.' }], id), keepsState: true })
const forgetting = (id: string): Model => scriptedModel([{ text: 'Well.' }], id)

function agentOf(model: Model, options: Partial<AgentOptions> = {}): Agent {
  return defineAgent({ name: 'desk', description: 'Helps.', instructions: 'Help.', model, ...options })
}

async function played(agent: Agent, options: RunOptions) {
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const run = createRuntime({ ledger, host: { clock } }).run(agent, 'Go.', options)
  const { reason } = (await waitUntilSettled(clock, run.result)) as { readonly reason?: string }
  const [start] = ofType(await recorded(ledger, run.id), 'run_started')
  return { reason, state: start?.providerState }
}

describe('a run that continues from what a provider keeps', () => {
  it.each<readonly [string, RunOptions]>([
    ['a response', { previousResponseId: 'resp_1' }],
    ['a conversation', { conversationId: 'conv_1' }],
  ])('begins from %s, where every model of its agents keeps it', async (_what, options) => {
    const next = defineAgent({
      name: 'next',
      description: 'Knows.',
      instructions: '',
      model: keeping('third'),
    })
    const agent = agentOf(keeping('first'), { fallbacks: [keeping('second')], handoffs: [next] })
    expect(await played(agent, options)).toEqual({ reason: 'answered', state: options })
  })

  it('begins with a model of its own, where that keeps it and the model of its agent does not', async () => {
    const options = { previousResponseId: 'resp_1', model: keeping('own') }
    expect(await played(agentOf(forgetting('first')), options)).toMatchObject({ reason: 'answered' })
  })

  it.each<readonly [string, Agent, RunOptions, RegExp]>([
    ['its model', agentOf(forgetting('first')), {}, /model first of the agent desk/],
    [
      'a fallback',
      agentOf(keeping('first'), { fallbacks: [keeping('second'), forgetting('third')] }),
      {},
      /model third of the agent desk/,
    ],
    [
      'the model of the run',
      agentOf(keeping('first')),
      { model: forgetting('own') },
      /model own of the agent desk/,
    ],
    [
      'an agent that takes over',
      agentOf(keeping('first'), {
        handoffs: [
          defineAgent({ name: 'next', description: 'Knows.', instructions: '', model: forgetting('other') }),
        ],
      }),
      {},
      /model other of the agent next/,
    ],
  ])('is refused where %s keeps nothing', (_who, agent, options, message) => {
    const runtime = createRuntime({ ledger: memoryLedger() })
    expect(() => runtime.run(agent, 'Go.', { ...options, previousResponseId: 'resp_1' })).toThrow(message)
    expect(() => runtime.run(agent, 'Go.', { ...options, conversationId: 'conv_1' })).toThrow(
      /^run: conversationId/,
    )
  })

  it('is refused where it is given both', () => {
    const runtime = createRuntime({ ledger: memoryLedger() })
    const options = { previousResponseId: 'resp_1', conversationId: 'conv_1' }
    expect(() => runtime.run(agentOf(keeping('first')), 'Go.', options as never)).toThrow(/one of the two/)
  })
})
