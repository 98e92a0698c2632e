import { readFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  type AgentOptions,
  ConfigurationError,
  createRuntime,
  defineAgent,
  handoff,
  type Ledger,
  memoryLedger,
  type Run,
  type RunId,
  RunNotFoundError,
  type RunOptions,
  type RuntimeEvent,
  outputMask,
} from '@tallystick/core'
import { readMessages } from '@tallystick/core/internal'
import { toModelRequest } from '@tallystick/core/machine'
import type { EventType } from '@tallystick/core/vocabulary'
import { foldTo, exportEvents, redact, verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import {
  explain,
  type ExplainedItem,
  type Explanation,
  exportRegression,
  replayRegression,
  replayRun,
} from '@tallystick/replay'
import {
  manualClock,
  sampleRunId,
  scriptedModel,
  seededRandom,
  waitUntilSettled,
  testTool,
  type ScriptedStep,
  watchedLedger,
  checkLaws,
} from '@tallystick/testkit'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import '../../../scripts/testing/seed.ts'
import { requireContent } from '../src/replay.ts'
import { temporaryFile, temporaryFolder } from './support/temporary-folder.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const usage = { inputTokens: 1000, outputTokens: 100, cacheReadTokens: 400 }
const prices = { 'scripted-1': { inputUsd: 3, outputUsd: 15, cacheReadUsd: 0.3, source: 'test' } }
const look = testTool({ name: 'look', run: ({ input }) => `Looked at ${JSON.stringify(input)}.` })
const looks = (...places: string[]): ScriptedStep => ({
  ...{ text: 'I look. ', toolCalls: places.map((at) => ({ name: 'look', input: { at } })), usage },
})

interface Driven {
  readonly ledger: Ledger
  readonly runId: RunId
  readonly events: readonly RuntimeEvent[]
  /** Numbers of a run's events of some types, in a turn. */
  readonly seqs: (turn: number, ...types: EventType[]) => number[]
}

interface Given {
  readonly ledger?: Ledger
  /** Called with the run once it has begun. */
  readonly began?: (run: Run) => void
}

let driven = 0

/** A run that the real runtime drives. */
async function drive(
  steps: readonly ScriptedStep[],
  options: Partial<AgentOptions<unknown>> = {},
  { ledger: given = memoryLedger(), began, ...more }: RunOptions & Given = {},
): Promise<Driven> {
  const { ledger, outside } = watchedLedger(given)
  const model = scriptedModel(steps)
  const agent = defineAgent<unknown>({
    name: 'looker',
    instructions: 'Look.',
    model,
    tools: [look],
    ...options,
  })
  const clock = manualClock()
  const host = { clock, random: seededRandom(++driven) }
  const run = createRuntime({ ledger, agents: [agent], prices, host }).run(agent, 'Look at things.', more)
  began?.(run)
  await waitUntilSettled(clock, run.result, outside)
  const events = await Array.fromAsync(ledger.read(run.id))
  return {
    ...{ ledger: given, runId: run.id, events },
    seqs: (turn, ...types) =>
      events.filter((event) => event.turn === turn && types.includes(event.type)).map(({ seq }) => seq),
  }
}

const reply = [
  'assistant_text_delta',
  'tool_input_delta',
  'tool_request_ready',
  'assistant_message_finished',
] as const
const seqsOf = (items: readonly ExplainedItem[]): unknown =>
  items.map(({ kind, message, seqs }) => [message?.role ?? kind, seqs])

describe('explain', () => {
  it('names the events that each part of a request came from, with tokens and cost', async () => {
    const ledger = sqliteLedger(temporaryFile())
    onTestFinished(() => ledger.close())
    const { runId, seqs } = await drive([looks('a', 'b'), { text: 'Seen.', usage }], {}, { ledger })
    const explanation = await explain(ledger, runId, 2)
    expect(explanation).toMatchObject({
      ...{ runId, turn: 2, agent: 'looker', model: { modelId: 'scripted-1' }, leftOut: [] },
      attempts: [
        { attempt: 1, seq: seqs(2, 'model_call_started')[0], outcome: 'answered', usage, costUsd: 0.00342 },
      ],
    })
    expect(seqsOf(explanation.items)).toEqual([
      ['instructions', [1]],
      ['tools', [1]],
      ['user', [2]],
      ['assistant', seqs(1, ...reply)],
      ['tool', [...seqs(1, 'tool_result'), ...seqs(1, 'tool_results_injected')]],
    ])
    // What was billed for the input: 600 tokens at 3 dollars a million, 400 from the cache at 0.3.
    const { tokens, items } = explanation
    expect(tokens).toEqual({ estimated: items.reduce((sum, item) => sum + item.tokens, 0), billed: 1000 })
    const cost = items.reduce((sum, item) => sum + (item.costUsd ?? NaN), 0)
    expect(cost).toBeCloseTo(600 * 3e-6 + 400 * 0.3e-6, 12)
    for (const item of items) expect(item.costUsd).toBeCloseTo((cost * item.tokens) / tokens.estimated, 12)
    const state = await foldTo(ledger, runId, seqs(2, 'model_call_started')[0])
    expect(explanation.requestDigest).toBe(state.phase === 'streaming' ? state.attempt.requestDigest : '')
    expect(tokens.estimated).toBeGreaterThan(0)
  })

  it('says what a summary replaced, and what a summary of summaries did', async () => {
    const compaction = {
      maxContextTokens: 30,
      keepMessages: 1,
      summarize: (all: readonly unknown[]) => `${all.length} before.`,
    }
    // Without what was billed, the history is judged by what it is estimated at.
    const plain = (at: string): ScriptedStep => ({ toolCalls: [{ name: 'look', input: { at } }] })
    const { ledger, runId, seqs } = await drive([plain('a'), plain('b'), plain('c'), { text: 'Seen.' }], {
      compaction,
    })
    const first = await explain(ledger, runId, 3)
    const inner = first.items.find(({ replaced }) => replaced !== undefined)
    expect(inner).toMatchObject({
      ...{ kind: 'message', index: 0, message: { role: 'user', parts: [{ text: '3 before.' }] } },
      seqs: seqs(2, 'context_compacted'),
      replaced: [
        { role: 'assistant', seqs: seqs(1, ...reply) },
        { role: 'tool', seqs: seqs(1, 'tool_result', 'tool_results_injected') },
      ],
    })
    // What the user asked for stays after the summary, and is the message that it was.
    expect(first.items.find(({ index }) => index === 1)).toMatchObject({
      message: { role: 'user' },
      seqs: [2],
    })
    const second = await explain(ledger, runId, 4)
    expect(second.items.find(({ replaced }) => replaced !== undefined)).toMatchObject({
      ...{ index: 0, seqs: seqs(3, 'context_compacted') },
      replaced: [
        { role: 'user', seqs: inner?.seqs, tokens: inner?.tokens, replaced: inner?.replaced },
        { role: 'assistant', seqs: seqs(2, ...reply) },
        { role: 'tool', seqs: seqs(2, 'tool_result', 'tool_results_injected') },
      ],
    })
    // What was never in the history again is not part of a later request, and counts nothing there.
    expect(second.items.filter(({ kind }) => kind === 'message')).toHaveLength(4)
    expect(second.tokens).not.toHaveProperty('billed')
    expect(second.items.every((item) => !('costUsd' in item))).toBe(true)
  })

  it('follows inputs that waited, guardrails that replaced, and answers that were asked for again', async () => {
    const { ledger, runId, events, seqs } = await drive(
      [looks('a'), { text: 'no JSON' }, { text: '{"a":1}' }],
      {
        output: { type: 'object', required: ['a'] },
        guardrails: [
          { name: 'polite', on: 'input', check: () => ({ replace: 'Look, please.' }) },
          { name: 'short', on: 'tool_output', check: () => ({ replace: 'Looked.' }) },
        ],
      },
    )
    const trips = events.flatMap((event) => (event.type === 'guardrail_tripped' ? [event.seq] : []))
    const { items } = await explain(ledger, runId, 3)
    expect(seqsOf(items)).toEqual([
      ['instructions', [1]],
      ['tools', [1]],
      ['output_schema', [1]],
      ['user', [2, trips[0]]],
      ['assistant', seqs(1, ...reply)],
      ['tool', [...seqs(1, 'tool_result'), trips[1], ...seqs(1, 'tool_results_injected')]],
      ['assistant', seqs(2, ...reply)],
      ['user', seqs(2, 'output_checked')],
    ])
    expect(items[3]).toMatchObject({ message: { parts: [{ text: 'Look, please.' }] } })
    expect(items[3]).not.toHaveProperty('replaced')
  })

  it('follows what waited until a model had answered, and what only looked at a result', async () => {
    let deliver = (): void => undefined
    const busy = testTool({ name: 'look', run: () => (deliver(), 'Looked.') })
    const looking = { name: 'looking', on: 'tool_output', check: () => ({ record: 'Seen.' }) } as const
    const { ledger, runId, seqs } = await drive(
      [looks('a'), { text: 'Done.' }, { text: 'Also done.' }],
      { tools: [busy], guardrails: [looking] },
      { began: (run) => (deliver = () => void run.queue('Look there, too.')) },
    )
    expect(seqs(1, 'guardrail_tripped')).toHaveLength(1)
    const [waiting] = seqs(1, 'input_received')
    const { items } = await explain(ledger, runId, 3)
    expect(seqsOf(items.slice(2))).toEqual([
      ['user', [2]],
      ['assistant', seqs(1, ...reply)],
      ['tool', seqs(1, 'tool_result', 'tool_results_injected')],
      ['assistant', seqs(2, ...reply)],
      ['user', [waiting, ...seqs(2, 'input_settled')]],
    ])
  })

  it('names the call of the model that wrote a summary', async () => {
    const summarize = scriptedModel([{ text: 'All before.' }], 'summarizer')
    const { ledger, runId, seqs } = await drive(
      [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Seen.' }],
      {
        compaction: { maxContextTokens: 20, keepMessages: 0, summarize },
      },
    )
    const { items } = await explain(ledger, runId, 2)
    const summary = items.find(({ replaced }) => replaced !== undefined)
    expect(summary?.seqs).toEqual(seqs(1, 'compaction_started', 'context_compacted'))
  })

  it('says of an attempt that it goes on, and that it was cut off', async () => {
    const ledger = memoryLedger()
    let during: Promise<Explanation> | undefined
    const began = (run: Run): void =>
      void run.events$.subscribe(({ type }) => {
        if (type !== 'assistant_text_delta') return
        during ??= explain(ledger, run.id, 1)
        void during.then(() => run.cancel('enough'))
      })
    const { runId } = await drive([{ text: 'I think', hang: true }], {}, { ledger, began })
    expect((await during)?.attempts).toMatchObject([{ attempt: 1, outcome: 'under_way' }])
    expect((await explain(ledger, runId, 1)).attempts).toMatchObject([{ attempt: 1, outcome: 'cut_off' }])
  })

  it('says what a turn showed instead of the history, and which attempt it explains', async () => {
    const { ledger, runId, seqs } = await drive(
      [looks('a'), { text: 'I', fail: 'overloaded' }, { text: 'Seen.' }],
      {
        prepareTurn: ({ turn, history }) =>
          turn === 1
            ? { instructions: 'Be brief.', tools: [], messages: readMessages(history).slice(1) }
            : undefined,
      },
    )
    const { items, attempts, leftOut } = await explain(ledger, runId, 2)
    const [first, second] = seqs(2, 'model_call_started')
    expect(attempts).toMatchObject([
      { attempt: 1, seq: first, outcome: 'failed', failure: 'overloaded' },
      { attempt: 2, seq: second, outcome: 'answered' },
    ])
    expect(leftOut).toMatchObject([{ role: 'user', seqs: [2] }])
    expect(seqsOf(items)).toEqual([
      ['instructions', [second]],
      ['tools', [1, second]],
      ['assistant', seqs(1, ...reply)],
      ['tool', [...seqs(1, 'tool_result'), ...seqs(1, 'tool_results_injected')]],
    ])
    expect((await explain(ledger, runId, 1)).leftOut).toEqual([])
  })

  it('follows a history that was carried over, edited, and handed over', async () => {
    const ledger = memoryLedger()
    const other = defineAgent({
      name: 'other',
      description: 'Knows.',
      instructions: 'Know.',
      model: scriptedModel([{ text: 'I know.' }]),
    })
    const { runId: before } = await drive([{ text: 'Hello.' }], {}, { ledger, sessionId: 'chat' })
    const message = { role: 'user', parts: [{ type: 'text', text: 'Look elsewhere.' }] } as const
    const { runId, seqs } = await drive(
      [{ toolCalls: [{ name: 'transfer_to_other', input: {} }] }],
      { handoffs: [handoff(other, { filter: (messages) => messages.slice(0, 3) })] },
      { ledger, sessionId: 'chat', edit: { of: before, edits: [{ index: 0, message }] } },
    )
    const [carried] = seqs(0, 'history_carried')
    const [edited] = seqs(0, 'history_edited')
    const [input] = seqs(0, 'input_received')
    const [handed] = seqs(1, 'agent_handed_off')
    const { items, leftOut, agent } = await explain(ledger, runId, 2)
    expect(agent).toBe('other')
    expect(seqsOf(items)).toEqual([
      ['instructions', [handed]],
      ['tools', [handed]],
      ['user', [carried, edited]],
      ['assistant', [carried]],
      ['user', [input]],
    ])
    expect(leftOut.map(({ role }) => role)).toEqual(['assistant', 'tool'])
  })

  it('says what one message of a handover replaced', async () => {
    const other = defineAgent({
      ...{ name: 'other', description: 'Knows.', instructions: 'Know.' },
      model: scriptedModel([{ text: 'I know.' }]),
    })
    const brief = { role: 'user', parts: [{ type: 'text', text: 'In short: look.' }] } as const
    const { ledger, runId, seqs } = await drive([{ toolCalls: [{ name: 'transfer_to_other', input: {} }] }], {
      handoffs: [handoff(other, { filter: ([, ...messages]) => [brief, ...messages] })],
    })
    const { items, leftOut } = await explain(ledger, runId, 2)
    const [first] = items.filter(({ kind }) => kind === 'message')
    expect(first).toMatchObject({ index: 0, message: brief, seqs: seqs(1, 'agent_handed_off') })
    expect(first?.replaced).toEqual([{ role: 'user', seqs: [2], tokens: expect.any(Number) as number }])
    expect(leftOut).toEqual([])
  })

  it('counts tools without the instructions, and instructions without the tools', async () => {
    const tokensOf = async (
      own: Partial<AgentOptions<unknown>>,
    ): Promise<readonly (number | undefined)[]> => {
      const { ledger, runId } = await drive([{ text: 'Hello.' }], own)
      const { items } = await explain(ledger, runId, 1)
      return items.map(({ tokens }) => tokens)
    }
    const long = 'Look around. '.repeat(50)
    const [brief, wordy, bare] = [
      await tokensOf({ instructions: 'Look.' }),
      await tokensOf({ instructions: long }),
      await tokensOf({ instructions: long, tools: [] }),
    ]
    expect(wordy[0]).toBeGreaterThan(brief[0] ?? NaN)
    expect([wordy[0], wordy[1]]).toEqual([bare[0], brief[1]])
    expect(bare[1]).toBeLessThan(brief[1] ?? NaN)
  })

  it('reads no event after the turn that it explains but the first', async () => {
    const { ledger, runId, seqs } = await drive([looks('a'), { text: 'Seen.' }])
    let last = 0
    const counting: Ledger = {
      ...ledger,
      async *read(...asked) {
        for await (const event of ledger.read(...asked)) {
          last = event.seq
          yield event
        }
      },
    }
    await explain(counting, runId, 1)
    expect(last).toBe(seqs(2, 'model_call_started')[0])
  })

  it('refuses a run that is not there, and a turn that the run did not have', async () => {
    const { ledger, runId } = await drive([{ text: 'Hello.' }])
    await expect(explain(ledger, sampleRunId(9), 1)).rejects.toThrow(RunNotFoundError)
    for (const turn of [0, 2, -1, 1.5, NaN]) {
      await expect(explain(ledger, runId, turn)).rejects.toThrow(ConfigurationError)
    }
    await expect(explain(ledger, runId, 2)).rejects.toThrow(`Run ${runId} has no turn 2`)
  })

  it('explains the whole of every request of random runs, by events that came before it', async () => {
    await fc.assert(
      fc.asyncProperty(randomProgram, async (program) => {
        const { ledger, events } = await playProgram(program)
        const { runId } = events[0] as RuntimeEvent
        for (const turn of new Set(events.map((event) => event.turn))) {
          const call = events.findLast((event) => event.turn === turn && event.type === 'model_call_started')
          if (call === undefined) continue
          const { items, attempts } = await explain(ledger, runId, turn)
          const state = await foldTo(ledger, runId, call.seq)
          const request = state.phase === 'streaming' ? toModelRequest(state) : undefined
          expect(items.flatMap(({ message }) => (message ? [message] : []))).toEqual(request?.messages)
          expect(attempts.at(-1)?.seq).toBe(call.seq)
          for (const { seqs } of items) {
            expect(seqs.length).toBeGreaterThan(0)
            expect(seqs).toEqual([...new Set(seqs)].toSorted((a, b) => a - b))
            expect(seqs.at(-1)).toBeLessThanOrEqual(call.seq)
          }
        }
      }),
      { numRuns: 30 },
    )
  })
})

// What a model wrote and what was shown of it are both in a store, through an export, and gone with its content.

const cards = outputMask({ name: 'cards', pattern: /[w-z]{4}-[w-z]{4}/g, window: 9, replacement: '****' })
const agent = defineAgent({
  ...{ name: 'desk', instructions: 'Help.', outputStream: { transforms: [cards], nextTurn: 'shown' } },
  model: scriptedModel([
    { reasoning: 'It is wxyz-wxyz.', text: 'Aaaa aaaa aaaa. Your card is wxyz-wxyz, it is.' },
  ]),
})

async function eventsOf(ledger: Ledger, runId: RunId): Promise<readonly RuntimeEvent[]> {
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId)) events.push(event)
  return events
}

it('given a run whose replies are masked, then its store holds both texts, verifies, replays, and loses both when redacted', async () => {
  const folder = temporaryFolder()
  const ledger = sqliteLedger(join(folder, 'runs.db'))
  onTestFinished(() => ledger.close())
  const run = createRuntime({ ledger }).run(agent, 'Which?')
  await run.result
  const events = await eventsOf(ledger, run.id)
  expect(checkLaws(events)).toEqual([])
  const deltas = events.filter((event) => event.type === 'assistant_text_delta')
  expect(deltas.map((event) => event.written ?? event.text).join('')).toContain('wxyz-wxyz')
  expect(deltas.map((event) => event.text).join('')).toBe('Aaaa aaaa aaaa. Your card is ****, it is.')
  expect(await verifyRun(ledger, run.id)).toMatchObject({ ok: true })
  expect((await replayRun(ledger, run.id, () => agent)).divergence).toBeUndefined()
  expect(JSON.stringify((await foldTo(ledger, run.id)).history)).not.toContain('Your card is wxyz')

  const secrets = [/[w-z]{4}-[w-z]{4}/g]
  const file = join(folder, 'desk.spec.ts')
  const { fixture } = await exportRegression(ledger, run.id, { file, agents: { from: './desk.ts' }, secrets })
  expect(readFileSync(fixture, 'utf8')).not.toContain('wxyz')
  expect(await replayRegression(fixture, agent, { secrets })).not.toHaveProperty('divergence')

  await redact(ledger, run.id, 'all', { by: 'ada', reason: 'asked' })
  const lines: string[] = []
  for await (const line of exportEvents(ledger, run.id)) lines.push(line)
  expect(lines.join('\n')).not.toMatch(/wxyz|\*\*\*\*/)
  expect(await foldTo(ledger, run.id)).toMatchObject({ phase: 'done' })
})

describe('a run of which content is gone', () => {
  it('is not driven again, and is not written as a regression test', async () => {
    const folder = temporaryFolder()
    const ledger = sqliteLedger(join(folder, 'runs.db'))
    onTestFinished(() => ledger.close())
    const agent = defineAgent({ name: 'a', instructions: '', model: scriptedModel([{ text: 'Yes.' }]) })
    const { runId } = await createRuntime({ ledger }).run(agent, 'Go.').result
    await redact(ledger, runId, [2, 4], { by: 'ada', reason: 'A name was in it.' })
    const refusal = `Run ${runId} cannot be driven again: the content of event 2 is redacted by ada. Choose a run that is whole.`
    await expect(replayRun(ledger, runId, () => agent)).rejects.toThrow(refusal)
    const file = join(folder, 'a.spec.ts')
    const written = exportRegression(ledger, runId, { file, agents: { from: './agent.ts' } })
    await expect(written).rejects.toThrow(refusal)
    await expect(written).rejects.toThrow(ConfigurationError)
    expect([file, join(folder, 'a.jsonl')].map((path) => existsSync(path))).toEqual([false, false])
  })

  it('is refused with what to do: sealed content needs keys', () => {
    const event = { runId: 'r', seq: 3 } as unknown as RuntimeEvent
    const refused =
      (kind: string): unknown =>
      () =>
        requireContent([event, { ...event, removed: { kind } } as RuntimeEvent])
    expect(refused('sealed')).toThrow('the content of event 3 is sealed. Open the ledger with its keys.')
    expect(refused('erased')).toThrow('the content of event 3 is erased. Choose a run that is whole.')
    expect(() => requireContent([event])).not.toThrow()
  })
})
