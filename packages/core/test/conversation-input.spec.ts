// A run that is given a conversation: what is recorded of it, what its model reads, and what is refused.
import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  defineGuardrail,
  type InputMessage,
  type Message,
  type RunResult,
  joinText,
} from '@tallystick/core'
import { checkTranscript, seededRandom, testTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage as stageOf, type Stage, type StageOptions } from './stage.ts'

const look = testTool({ name: 'look', run: () => '21 °C' })
const steps = [
  { toolCalls: [{ name: 'look', input: {} }] },
  { text: 'It is 21 °C.' },
  { text: 'Warmer.' },
  { text: 'Bye.' },
]
let processes = 0
const stage = (options: StageOptions = {}): Stage =>
  stageOf({ random: seededRandom(++processes), steps, tools: [look], ...options })

const shown = (message: Message): string =>
  message.role === 'tool'
    ? `tool: ${message.results.map(({ content }) => joinText(content)).join()}`
    : `${message.role}: ${joinText(message.parts)}`

async function firstRun(set: Stage): Promise<RunResult> {
  return await set.play('How warm is it?')
}

describe('a run that is given a conversation', () => {
  it('continues what another run said, in a ledger of its own', async () => {
    const first = await firstRun(stage())
    const second = stage({ steps: [{ text: 'Warmer.' }] })
    const input = [...first.messages, { role: 'user', content: 'And tomorrow?' } as const]
    const run = second.runtime.run(second.agent, input)
    const result = await second.waitUntilSettled(run.result)
    expect(second.model.requests[0]?.messages.map(shown)).toEqual([
      'user: How warm is it?',
      'assistant: ',
      'tool: 21 °C',
      'assistant: It is 21 °C.',
      'user: And tomorrow?',
    ])
    const events = checkedRun(await second.eventsOf(run))
    expect(ofType(events, 'history_carried')[0]?.messages).toEqual(first.messages)
    expect(ofType(events, 'input_received')[0]?.message).toEqual({
      role: 'user',
      parts: [{ type: 'text', text: 'And tomorrow?' }],
    })
    expect(ofType(events, 'run_started')[0]?.parent).toBeUndefined()
    expect(checkTranscript(result.messages)).toEqual([])
    expect(result.messages.map(shown).slice(-2)).toEqual(['user: And tomorrow?', 'assistant: Warmer.'])
  })

  it('is given what a result makes of its messages and a next one', async () => {
    const first = await firstRun(stage())
    expect(first.toInput()).toEqual(first.messages)
    expect(first.toInput('And?').at(-1)).toEqual({ role: 'user', parts: [{ type: 'text', text: 'And?' }] })
    const parts = [{ type: 'text', text: 'So?' }] as const
    expect(first.toInput(parts).slice(0, -1)).toEqual(first.messages)
    expect(first.toInput(parts).at(-1)).toEqual({ role: 'user', parts })
  })

  it('takes texts in short, and says that no model is known to have written a reply among them', async () => {
    const set = stage({ steps: [{ text: 'Blue.' }] })
    const run = set.runtime.run(set.agent, [
      { role: 'user', content: 'Red or blue?' },
      { role: 'assistant', content: 'Which do you like?' },
      { role: 'user', parts: [{ type: 'text', text: 'You say.' }] },
    ])
    await set.waitUntilSettled(run.result)
    const [carried] = ofType(checkedRun(await set.eventsOf(run)), 'history_carried')
    expect(carried?.messages[1]).toEqual({
      role: 'assistant',
      parts: [{ type: 'text', text: 'Which do you like?' }],
      model: { provider: 'given', api: 'given', modelId: 'given' },
      stopReason: 'end',
      partial: false,
    })
  })

  it('records it after the history of its session, which the next run carries on', async () => {
    const set = stage({ steps: [{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }] })
    const options = { sessionId: 'chat' }
    await set.waitUntilSettled(set.runtime.run(set.agent, 'A', options).result)
    const given = [
      { role: 'assistant', content: 'By the way.' },
      { role: 'user', content: 'B' },
    ] as const
    await set.waitUntilSettled(set.runtime.run(set.agent, given, options).result)
    await set.waitUntilSettled(set.runtime.run(set.agent, 'C', options).result)
    expect(set.model.requests[2]?.messages.map(shown)).toEqual([
      'user: A',
      'assistant: One.',
      'assistant: By the way.',
      'user: B',
      'assistant: Two.',
      'user: C',
    ])
  })

  it('lets input guardrails check what no run has checked, and only that', async () => {
    const checked: string[] = []
    const guardrail = defineGuardrail({
      name: 'watch',
      on: 'input',
      check: ({ text }) => {
        checked.push(text)
        return text === 'evil' ? { block: 'evil' } : 'pass'
      },
    })
    const set = stage({ guardrails: [guardrail], steps: [{ text: 'One.' }, { text: 'Two.' }] })
    const options = { sessionId: 'chat' }
    await set.waitUntilSettled(set.runtime.run(set.agent, 'A', options).result)
    const given = ['evil', 'B'].map((content) => ({ role: 'user', content }) as const)
    const result = await set.waitUntilSettled(set.runtime.run(set.agent, given, options).result)
    expect(checked).toEqual(['A', 'evil'])
    expect(result.reason).toBe('guardrail')
  })

  it('copies it: what its giver does with it afterwards changes nothing', async () => {
    const set = stage({ steps: [{ text: 'Blue.' }] })
    const given = [
      { role: 'user', content: 'A' },
      { role: 'user', content: 'B' },
    ] satisfies InputMessage[]
    const run = set.runtime.run(set.agent, given)
    given[0]!.content = 'forged'
    given.pop()
    await set.waitUntilSettled(run.result)
    expect(set.model.requests[0]?.messages.map(shown)).toEqual(['user: A', 'user: B'])
  })

  it('joins no run with it: that one has its own past', async () => {
    const set = stage()
    const given = [
      { role: 'user', content: 'A' },
      { role: 'user', content: 'B' },
    ] as const
    const joined = set.runtime.session('chat').run(set.agent, given, { whenBusy: 'join' })
    await expect(joined).rejects.toThrow('Only one message can join a run of session chat, and 2 were given')
    const run = await set.runtime.session('chat').run(set.agent, given.slice(1), { whenBusy: 'join' })
    expect((await set.waitUntilSettled(run.result)).messages.map(shown)[0]).toBe('user: B')
  })
})

describe('a conversation that no model can be shown is refused before anything is written', async () => {
  const { messages } = await firstRun(stage())
  const [asked, call, result, answer] = messages as [Message, Message, Message, Message]
  const next = { role: 'user', content: 'And?' } as const
  it.each<readonly [string, readonly unknown[], string]>([
    ['a call without its result', [asked, call, next], 'message 1 and its tool results do not match'],
    ['a result without its call', [asked, result, next], 'the tool results at 1 answer no message'],
    ['a result at first', [result, next], 'the tool results at 0 answer no message'],
    ['a result twice', [asked, call, result, result, next], 'the tool results at 3 answer no message'],
    ['a reply at the end', [asked, call, result, answer], 'its last message, at 3, has the role assistant'],
    ['a result at the end', [asked, call, result], 'its last message, at 2, has the role tool'],
    ['a role that is none', [{ role: 'system', content: 'Obey.' }, next], '[0].role is a text; use one of'],
    [
      'content that is not text',
      [{ role: 'user', content: 7 }, next],
      '[0].parts[0].text is 7; expected a text',
    ],
    ['a part among messages', [next, { type: 'text', text: 'x' }], '[1].role is missing'],
    ['nothing', [null, next], '[0] is null; expected an object'],
    ['an empty message', [{ role: 'user', content: '' }, next], '[0] is empty'],
    ['a value that is not JSON', [{ ...asked, extra: () => 1 }, next], '[0] is not what JSON can carry'],
  ])('%s', async (_name, input, why) => {
    const set = stage()
    expect(() => set.runtime.run(set.agent, input as readonly InputMessage[])).toThrow(why)
    const runs: unknown[] = []
    for await (const run of set.ledger.runs({})) runs.push(run)
    expect(runs).toEqual([])
  })

  it('is continued by another process from the ledger alone', async () => {
    const first = stage({ tools: [testTool({ name: 'look', check: () => ({ kind: 'ask' }) })] })
    const run = first.runtime.run(first.agent, [...messages, next])
    const rest = await first.waitUntilSettled(run.result)
    expect(rest.status).toBe('suspended')
    const { ledger, clock, agent } = first
    const other = createRuntime({ ledger, agents: [agent], host: { clock } })
    const resumed = other.resume(run.id)
    await first.waitUntilSettled(resumed.approve(rest.pendingApprovals[0]!, { by: 'ada' }))
    await first.waitUntilSettled(resumed.result)
    const events = checkedRun(await first.eventsOf(run))
    expect(first.model.requests[1]?.messages.slice(0, 4)).toEqual(messages)
    expect(ofType(events, 'model_call_started')).toHaveLength(2)
  })
})
