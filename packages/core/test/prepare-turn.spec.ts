// An agent that prepares each turn: it sees the whole request, may take its time, and answers with another.
import { describe, expect, it } from 'vitest'
import {
  type AgentOptions,
  ConfigurationError,
  createRuntime,
  defineAgent,
  foldedHistory,
  memoryLedger,
  type Message,
  joinText,
} from '@tallystick/core'

import { manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import { checkedRun, ofType, recorded, stage } from './stage.ts'
import type { TurnRequest } from '../src/machine/rules.ts'

const said = (text: string): Message => ({ role: 'user', parts: [{ type: 'text', text }] })
const look = testTool({ name: 'look', run: () => 'card 4111-1111' })
const looks = { toolCalls: [{ name: 'look', input: {} }] }
const usage = { inputTokens: 10, outputTokens: 2 }
const later = async <T>(value: T): Promise<T> => {
  await Promise.resolve()
  return value
}
const never = (): Promise<undefined> => new Promise(() => {})
type Prepare = NonNullable<AgentOptions['prepareTurn']>

/** The last five messages, as the filter of another library leaves them: a result keeps its call. */
const lastFive: Prepare = async ({ request }) => {
  const from = Math.max(0, request.messages.length - 5)
  const orphaned = request.messages[from]?.role === 'tool'
  return later({ messages: request.messages.slice(orphaned ? from - 1 : from) })
}

/** Card numbers are nothing for a model. */
const masked = (message: Message): Message =>
  JSON.parse(JSON.stringify(message).replaceAll(/\d{4}-\d{4}/g, '****')) as Message

describe('a turn that is prepared', () => {
  it('shows its whole request, in a promise or at once', async () => {
    const seen: TurnRequest[] = []
    const set = stage({
      steps: [looks, { text: 'Done.' }],
      tools: [look],
      modelSettings: { temperature: 0.5 },
      maxOutputTokens: 300,
      prepareTurn: ({ request, turn }) => {
        seen.push(request)
        return turn === 0 ? later(undefined) : undefined
      },
    })
    const run = set.start()
    await set.waitUntilSettled(run.result)
    expect(seen).toHaveLength(2)
    for (const [place, sent] of set.model.requests.entries()) {
      const { model, ...request } = seen[place]!
      expect(request).toEqual(sent)
      expect(model).toEqual({ provider: 'scripted', api: 'script', modelId: set.model.modelId })
    }
    const calls = ofType(checkedRun(await set.eventsOf(run)), 'model_call_started')
    expect(calls.map((call) => 'change' in call)).toEqual([false, false])
  })

  it('may be answered with another request, of which the differences are recorded', async () => {
    const set = stage({
      steps: [{ text: 'Done.' }],
      tools: [look, testTool({ name: 'pay' })],
      output: undefined,
      prepareTurn: async ({ request }) =>
        later({
          ...request,
          instructions: 'Be kind.',
          tools: request.tools.filter(({ name }) => name === 'look'),
          modelSettings: { temperature: 0.1 },
          parallelToolCalls: false,
          toolChoice: { type: 'any' as const },
          maxOutputTokens: 77,
        }),
    })
    const run = set.start()
    await set.waitUntilSettled(run.result)
    expect(set.model.requests).toMatchObject([
      {
        ...{ instructions: 'Be kind.', parallelToolCalls: false, toolChoice: { type: 'any' } },
        ...{ maxOutputTokens: 77, modelSettings: { temperature: 0.1 }, tools: [{ name: 'look' }] },
      },
    ])
    const [call] = ofType(checkedRun(await set.eventsOf(run)), 'model_call_started')
    expect(call?.change).toEqual({
      ...{ instructions: 'Be kind.', tools: ['look'], modelSettings: { temperature: 0.1 } },
      ...{ parallelToolCalls: false, maxOutputTokens: 77 },
    })
  })

  it('may show the last five messages, which are recorded as a range', async () => {
    const set = stage({
      steps: [looks, looks, looks, { text: 'Done.' }],
      tools: [look],
      prepareTurn: lastFive,
    })
    const run = set.start()
    await set.waitUntilSettled(run.result)
    expect(set.model.requests.map(({ messages }) => messages.length)).toEqual([1, 3, 5, 6])
    const calls = ofType(checkedRun(await set.eventsOf(run)), 'model_call_started')
    expect(calls.slice(0, 3).map((call) => 'change' in call)).toEqual([false, false, false])
    expect(calls[3]?.change?.shown?.pieces).toEqual([{ from: 1, to: 7 }])
    expect(set.model.requests[3]?.messages[0]).toEqual(set.model.requests[2]?.messages[1])
  })

  it('may mask, so that no model is shown what the ledger holds, at the finalizing call neither', async () => {
    const set = stage({
      steps: [
        { ...looks, usage },
        { text: 'Closed.', usage },
      ],
      tools: [look],
      limits: { maxTurns: 2 },
      prepareTurn: async ({ request: { messages } }) => later({ messages: messages.map(masked) }),
    })
    const run = set.start('My card is 4242-4242.')
    const result = await set.waitUntilSettled(run.result)
    expect(result.reason).toBe('turn_limit')
    const shown = JSON.stringify(set.model.requests)
    expect(shown).toContain('My card is ****.')
    expect(shown).toContain('card ****')
    expect(shown).not.toMatch(/\d{4}-\d{4}/)
    const events = checkedRun(await set.eventsOf(run))
    const finalizing = ofType(events, 'model_call_started').at(-1)
    expect(finalizing).toMatchObject({ finalizing: true, toolChoice: { type: 'none' } })
    // The reply between the two is the history's own.
    expect(finalizing?.change?.shown?.pieces).toMatchObject([
      { messages: [{}] },
      { from: 1, to: 2 },
      { messages: [{}] },
    ])
    expect(JSON.stringify(ofType(events, 'tool_result'))).toContain('4111-1111')
  })

  it('may bring in what was looked up for it', async () => {
    const library = (question: string): Promise<string> => later(`Known of "${question}": it opens at nine.`)
    const set = stage({
      prepareTurn: async ({ request: { messages } }) => {
        const last = messages.findLast((message) => message.role === 'user')
        const found = await library(last?.role === 'user' ? joinText(last.parts) : '')
        return { messages: [said(found), ...messages] }
      },
    })
    const run = set.start('When does it open?')
    await set.waitUntilSettled(run.result)
    expect(foldedHistory(set.model.requests[0]!.messages)).toMatchObject([
      {
        parts: [{ text: expect.stringMatching(/Known of "When does it open\?"[\s\S]*When does it open\?/) }],
      },
    ])
  })

  it('is prepared again where the user says more meanwhile', async () => {
    const held: ((change: undefined) => void)[] = []
    const asked: number[] = []
    const set = stage({
      steps: [{ ...looks }, { text: 'Done.' }],
      tools: [look],
      prepareTurn: ({ request: { messages } }) => {
        asked.push(messages.length)
        return asked.length === 2 ? new Promise((resolve) => void held.push(resolve)) : later(undefined)
      },
    })
    const run = set.start()
    while (held.length === 0) await Promise.resolve()
    await run.steer('And hurry.')
    await set.waitUntilSettled(run.result)
    // What comes of the request of before is too late.
    held[0]?.(undefined)
    expect(asked).toEqual([1, 3, 4])
    expect(set.model.requests.map(({ messages }) => messages.length)).toEqual([1, 4])
  })

  it('is prepared again where the history was made shorter after a failure', async () => {
    const set = stage({
      steps: [looks, looks, { fail: 'context_overflow' }, { text: 'Done.' }],
      tools: [look],
      compaction: { maxContextTokens: 100_000, keepMessages: 1 },
      prepareTurn: async ({ request: { messages } }) => later({ messages: [said('Note.'), ...messages] }),
    })
    const run = set.start()
    expect((await set.waitUntilSettled(run.result)).text).toBe('Done.')
    const calls = ofType(checkedRun(await set.eventsOf(run)), 'model_call_started')
    expect(calls.map(({ attempt }) => attempt)).toEqual([1, 1, 1, 2])
    expect(set.model.requests[2]?.messages).toHaveLength(6)
    const [note, ...rest] = set.model.requests[3]!.messages
    expect(note).toEqual(said('Note.'))
    expect(rest.length).toBeLessThan(5)
  })
})

describe('a turn whose preparation fails', () => {
  it.each<readonly [string, Prepare, RegExp]>([
    [
      'is rejected',
      () => Promise.reject(new Error('the index is down')),
      /^prepareTurn of the agent agent failed: the index is down\. No model was called\. Run .* is on record up to here.*: continue it with resume/,
    ],
    [
      'throws at once',
      () => {
        throw new Error('the index is down')
      },
      /^prepareTurn of the agent agent failed: the index is down\. No model was called\. Run .* is on record up to here.*: continue it with resume/,
    ],
    ['never answers', never, /^prepareTurn of the agent agent did not answer within 60000 ms\. No model/],
    [
      'parts a call from its result',
      async ({ request: { messages } }) => later({ messages: messages.slice(0, 2) }),
      /message 1 and its tool results do not match\. Keep at least one message, and each call together with its result/,
    ],
    ['shows nothing', () => later({ messages: [] }), /nothing is left to be shown/],
    [
      'shows no message',
      () => later({ messages: [{ role: 'user', content: 'Hi' }] as never }),
      /messages\[0\] is an object; expected a message as the request has them/,
    ],
    [
      'offers a tool of its own',
      () => later({ tools: [{ ...look, description: 'x' }] }),
      /offers the tool look, which the request does not have/,
    ],
    ['offers no tool', () => later({ tools: [7 as never] }), /tools\[0\] is 7; expected the name of a tool/],
    ['asks for another answer', () => later({ outputSchema: { type: 'object' } }), /changes outputSchema/],
    ['has settings of no model', () => later({ modelSettings: { topP: 7 } }), /modelSettings\.topP is 7/],
    [
      'chooses otherwise',
      () => later({ toolChoice: { type: 'some' as never } }),
      /toolChoice\.type is 'some'/,
    ],
    ['answers a text', () => later('no' as never), /prepareTurn of the agent agent: its answer is a text/],
  ])('rejects where it %s, and continues with a resume', async (_how, prepareTurn, message) => {
    const clock = manualClock()
    const ledger = memoryLedger()
    const made = (prepare: Prepare, model = scriptedModel([{ text: 'Done.' }])) =>
      defineAgent({ name: 'agent', instructions: 'Act.', model, tools: [look], prepareTurn: prepare })
    const first = scriptedModel([looks, { text: 'Never.' }])
    const failing = made((turn, context) => (turn.turn === 0 ? undefined : prepareTurn(turn, context)), first)
    const run = createRuntime({ ledger, host: { clock, report: () => {} } }).run(failing, 'Go.')
    await expect(waitUntilSettled(clock, run.result)).rejects.toThrow(message)
    expect(first.requests).toHaveLength(1)
    const sound = made(() => undefined)
    const resumed = createRuntime({ ledger, agents: [sound], host: { clock } }).resume(run.id)
    expect(await waitUntilSettled(clock, resumed.result)).toMatchObject({ reason: 'answered', text: 'Done.' })
    checkedRun(await recorded(ledger, run.id))
  })

  it('rejects with the error itself where the agent throws one of this library', async () => {
    const own = new ConfigurationError('There is no index.')
    const set = stage({
      prepareTurn: () => {
        throw own
      },
    })
    await expect(set.play()).rejects.toMatchObject({
      cause: own,
      message: expect.stringContaining(own.message),
    })
    const other = new TypeError('no index')
    const failing = stage({
      prepareTurn: () => {
        throw other
      },
    })
    await expect(failing.play()).rejects.toMatchObject({ code: own.code, cause: other })
  })

  it('has the time that the agent gives it', async () => {
    const set = stage({ timeouts: { prepareMs: 500 }, prepareTurn: never })
    await expect(set.play()).rejects.toThrow('did not answer within 500 ms')
    expect(set.agent.definition.policy?.timeouts).toEqual({ prepareMs: 500 })
    expect(() => stage({ timeouts: { prepareMs: 0 } })).toThrow(/timeouts\.prepareMs/)
  })

  it('ends with the run that is cancelled', async () => {
    const set = stage({ prepareTurn: never })
    const run = set.start()
    await run.cancel('Enough.')
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'cancelled', turns: 0 })
  })

  it.each(['finalize', 'stop'] as const)('ends with the time of the run (%s)', async (onLimit) => {
    const set = stage({ prepareTurn: never, limits: { maxDurationMs: 8_000, onLimit } })
    const run = set.start()
    const begun = set.clock.now()
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'time_limit', turns: 0 })
    expect(set.clock.now() - begun).toBe(8_000)
    const events = checkedRun(await set.eventsOf(run))
    expect(events.at(-1)).toMatchObject(
      onLimit === 'stop'
        ? { reason: 'time_limit' }
        : {
            detail: 'No closing call was made: prepareTurn did not answer before the time of the run was up.',
          },
    )
    // What is held back for the answer is held back from the preparation, too.
    expect(ofType(events, 'limit_reached')[0]!.at - begun).toBe(onLimit === 'stop' ? 8_000 : 6_000)
    expect(set.model.requests).toEqual([])
  })
})
