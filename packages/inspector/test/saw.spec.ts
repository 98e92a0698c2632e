import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { RunModel } from '../src/page/worker/run-model.ts'
import { describeReply, describeSaw, shareCached } from '../src/page/worker/saw.ts'
import { readModel } from './support/read-model.ts'

const usage = { inputTokens: 400, outputTokens: 20, cacheReadTokens: 100 }

async function play(instructionsOfTurn?: (turn: number) => string): Promise<RunModel> {
  const agent = defineAgent({
    name: 'clerk',
    instructions: 'Answer briefly.',
    model: scriptedModel([
      { text: 'Let me look.', toolCalls: [{ name: 'look', input: { order: 'A-7' } }], usage },
      { text: 'It is on its way.', usage },
    ]),
    tools: [testTool({ name: 'look', run: () => 'sent' })],
    ...(instructionsOfTurn && {
      prepareTurn: ({ turn }: { readonly turn: number }) => ({ instructions: instructionsOfTurn(turn) }),
    }),
  })
  const ledger = memoryLedger()
  const run = createRuntime({ ledger, agents: [agent], host: { clock: manualClock() } }).run(
    agent,
    'Where is A-7?',
  )
  await run.result
  return readModel(ledger, run.id)
}

it('lists the parts of a request by origin, with their events, and what the turn before did not have', async () => {
  const model = await play()
  const [first, second] = [await describeSaw(model, 1), await describeSaw(model, 2)]
  expect(first?.parts.map(({ origin, change }) => [origin, change])).toEqual([
    ['instructions', undefined],
    ['tools', undefined],
    ['user', undefined],
  ])
  expect(second?.parts.map(({ origin, change }) => [origin, change])).toEqual([
    ['instructions', 'same'],
    ['tools', 'same'],
    ['user', 'same'],
    ['reply', 'added'],
    ['results', 'added'],
  ])
  expect(second?.removed).toEqual([])
  expect(second?.parts.at(-1)?.text.text).toBe('look: success\nsent')
  for (const seq of second?.parts.at(-1)?.seqs ?? [])
    expect(model.events[seq - 1]?.type).toMatch(/^tool_result/)
  expect(second?.attempts).toMatchObject([{ outcome: 'answered', digest: { is: 'same' } }])
  expect(await describeSaw(model, 9)).toBeUndefined()
})

it('names what a turn overrides, and shows what it changed', async () => {
  const model = await play((turn) => `Answer in turn ${turn}.`)
  const saw = await describeSaw(model, 2)
  expect(saw?.overrides).toEqual(['instructions'])
  expect(saw?.parts[0]).toMatchObject({
    change: 'changed',
    before: { text: 'Answer in turn 0.' },
    text: { text: 'Answer in turn 1.' },
  })
})

it('finds a request that is not the recorded one, and does not judge one whose content was removed', async () => {
  const { events } = await play()
  const forged = new RunModel()
  forged.add(
    events.map((event) =>
      event.type === 'input_received'
        ? { ...event, message: { role: 'user', parts: [{ type: 'text', text: 'Where is B-8?' }] } }
        : event,
    ),
  )
  expect((await describeSaw(forged, 1))?.attempts[0]?.digest.is).toBe('other')
  const removed = new RunModel()
  removed.add(events.map((event) => (event.seq === 2 ? { ...event, removed: { kind: 'redacted' } } : event)))
  expect((await describeSaw(removed, 1))?.attempts[0]?.digest.is).toBe('gone')
})

it('gives the cached tokens to the parts from the first on, as far as they go', () => {
  const part = { origin: 'user', text: '', seqs: [] } as const
  const parts = [30, 50, 20].map((tokens, index) => ({ ...part, key: String(index), tokens, cached: 0 }))
  const cachedOf = (read: number): readonly number[] =>
    shareCached(parts, { inputTokens: 200, cacheReadTokens: read }).map(({ cached }) => cached)
  expect(cachedOf(80)).toEqual([30, 10, 0])
  expect(cachedOf(900)).toEqual([30, 50, 20])
  expect(cachedOf(0)).toEqual([0, 0, 0])
})

it('shows a reply as far as it had come at an event', async () => {
  const model = await play()
  const end = model.events.findIndex(({ type }) => type === 'assistant_message_finished') + 1
  const whole = describeReply(model, 1, end)
  expect(whole).toMatchObject({
    isStreaming: false,
    pieces: [{ text: { text: 'Let me look.' } }, { name: 'look' }],
  })
  const delta = model.events.findIndex(({ type }) => type === 'assistant_text_delta') + 1
  const half = describeReply(model, 1, delta)
  expect(half).toMatchObject({ isStreaming: true, deltas: 1 })
  expect(whole?.pieces[0]?.text.text.startsWith(half?.pieces[0]?.text.text ?? '-')).toBe(true)
  expect(describeReply(model, 2, delta)).toBeUndefined()
})
