import { describe, expect, it } from 'vitest'
import { agentTool, defineAgent } from '@tallystick/core'
import { scriptedModel, testTool, type ScriptedStep } from '@tallystick/testkit'
import { checkedRun, ofType, stage } from './stage.ts'

const look = testTool({ name: 'look', run: () => 'three open tickets' })
const asks: ScriptedStep = { toolCalls: [{ name: 'look', input: {} }] }

async function play(steps: readonly ScriptedStep[], options: object = {}) {
  const set = stage({ steps: [...steps], tools: [look], ...options })
  const run = set.start()
  const result = await set.waitUntilSettled(run.result)
  return { result, events: checkedRun(await set.eventsOf(run)) }
}

describe('a reply without a word', () => {
  it.each<readonly [string, ScriptedStep]>([
    ['nothing', {}],
    ['blanks', { text: ' \n\t' }],
    ['reasoning alone', { reasoning: 'Three tickets, I think.' }],
  ])(
    'given %s and then an answer, when the model is asked again, then the answer counts',
    async (_, empty) => {
      const { result, events } = await play([asks, empty, { text: 'Three.' }])
      expect(result).toMatchObject({ reason: 'answered', text: 'Three.', turns: 2 })
      expect(ofType(events, 'model_stream_failed').map(({ failure }) => failure.class)).toEqual([
        'empty_reply',
      ])
    },
  )

  it('given that it comes every time, when the attempts are over, then the run ends as empty_reply', async () => {
    const { result } = await play([asks, {}])
    expect(result).toMatchObject({
      reason: 'empty_reply',
      text: '',
      failure: { class: 'empty_reply', provider: 'scripted' },
    })
  })

  it('given a limit that was met, when the closing call has no word, then the limit is why the run ends', async () => {
    const { result } = await play([asks, {}], { limits: { maxTurns: 1 } })
    expect(result.reason).toBe('turn_limit')
  })

  it('given a child run, when its answer is empty, then its parent reads that there is none', async () => {
    const child = defineAgent({
      name: 'researcher',
      description: 'Finds out.',
      instructions: 'Find out.',
      model: scriptedModel([{}]),
    })
    const { events } = await play(
      [{ toolCalls: [{ name: 'researcher', input: { task: 'How many?' } }] }, { text: 'Nobody knows.' }],
      { tools: [agentTool(child)] },
    )
    const [told] = ofType(events, 'tool_result')
    expect(told).toMatchObject({ outcome: 'failed' })
    expect(JSON.stringify(told?.content)).toContain('without an answer (empty_reply')
  })
})
