// The ids of calls can be guessed: read_result reads what its agent was shown, and nothing that was taken from it.
import {
  createRuntime,
  defineAgent,
  foldedHistory,
  handoff,
  memoryLedger,
  type Message,
  type RunId,
  type RunOptions,
  joinText,
} from '@tallystick/core'
import { type EventOf, deriveToolCallId } from '@tallystick/core/vocabulary'
import { callTool, scriptedModel, type ScriptedStep } from '@tallystick/testkit'
import { defineTool, readResult } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

const long = Array.from({ length: 100 }, (_, index) => `line ${index}\u0085`).join('\n')

/** A ledger, and a tool with a long result. */
function shop() {
  const ledger = memoryLedger()
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    input: z.object({}),
    effect: 'read',
    maxResultChars: 200,
    execute: () => long,
  })
  return { ledger, tools: [look, readResult({ ledger })] }
}

const looks: ScriptedStep = { toolCalls: [{ name: 'look', input: {} }] }
const transfers: ScriptedStep = { toolCalls: [{ name: 'transfer_to_second', input: { reason: 'yours' } }] }
/** Reads the first call of a run, which can be derived from the run's id alone. */
const reads = (runId: () => RunId): ScriptedStep => {
  return () => ({
    toolCalls: [
      { name: 'read_result', input: { call: deriveToolCallId(runId(), 1, 1, 1), find: 'line 50' } },
    ],
  })
}
const isRead = /^Characters \d+ to \d+ of \d+\. This is its end\.\nline 50/
const isRefused = /^There is no result of a call/

/** What `read_result` answered last in a run. */
async function answered(ledger: ReturnType<typeof memoryLedger>, runId: RunId): Promise<string> {
  const results: EventOf<'tool_result'>[] = []
  for await (const event of ledger.read(runId)) if (event.type === 'tool_result') results.push(event)
  const last = results.findLast(({ name }) => name === 'read_result')
  return joinText(last?.content ?? [])
}

describe('read_result after a handoff', () => {
  type Filter = ((messages: readonly Message[]) => readonly Message[]) | undefined
  const onlyUser: Filter = (messages) => messages.filter(({ role }) => role === 'user')

  it.each<[string, Filter, RegExp]>([
    ['all of the conversation', undefined, isRead],
    ['the conversation folded into one text', foldedHistory, isRead],
    ['only what the user said', onlyUser, isRefused],
  ])(
    'given an agent that is shown %s, when it reads the call, then it gets what it was shown',
    async (_name, filter, expected) => {
      const { ledger, tools } = shop()
      let own: RunId | undefined
      const second = defineAgent({
        ...{ name: 'second', instructions: 'Go on.', tools },
        model: scriptedModel([reads(() => own!), { text: 'Done.' }], 'second'),
      })
      const first = defineAgent({
        ...{ name: 'first', instructions: 'Begin.', tools, handoffs: [handoff(second, { filter })] },
        model: scriptedModel([looks, transfers]),
      })
      const run = createRuntime({ ledger, agents: [first] }).run(first, 'Look.')
      own = run.id
      expect(await run.result).toMatchObject({ reason: 'answered', agent: 'second' })
      expect(await answered(ledger, run.id)).toMatch(expected)
    },
  )
})

describe('read_result in a conversation', () => {
  /** A run that looks, and one that begins with its history and reads what the first one saw. */
  async function later(options: (first: RunId) => RunOptions): Promise<string> {
    const { ledger, tools } = shop()
    let before: RunId | undefined
    const model = scriptedModel([looks, { text: 'Seen.' }, reads(() => before!), { text: 'Done.' }])
    const agent = defineAgent({ name: 'a', instructions: 'Look.', model, tools })
    const runtime = createRuntime({ ledger, agents: [agent] })
    const first = runtime.run(agent, 'Look.', { sessionId: 's' })
    before = first.id
    await first.result
    const second = runtime.run(agent, 'And?', options(first.id))
    expect(await second.result).toMatchObject({ reason: 'answered' })
    return await answered(ledger, second.id)
  }

  it('reads on in the next run, and not where the past was edited', async () => {
    expect(await later(() => ({ sessionId: 's' }))).toMatch(isRead)
    const edits = [{ index: 1 }, { index: 2 }]
    expect(await later((of) => ({ sessionId: 's', edit: { of, edits } }))).toMatch(isRefused)
  })

  const compaction = { maxContextTokens: 150, keepMessages: 1, summarize: () => 'It looked.' }

  it.each([
    ['by the same agent', false],
    ['by the agent that took over all of it', true],
  ])('reads what a summary took out of the conversation of its run since, %s', async (_name, handsOver) => {
    const { ledger, tools } = shop()
    let own: RunId | undefined
    let seen: readonly Message[] = []
    const reading: ScriptedStep = ({ messages }) => {
      seen = messages
      const input = { call: deriveToolCallId(own!, 1, 1, 1), find: 'line 50' }
      return { toolCalls: [{ name: 'read_result', input }] }
    }
    const second = defineAgent({
      ...{ name: 'second', instructions: 'Go on.', tools, compaction },
      model: scriptedModel([reading, { text: 'Done.' }], 'second'),
    })
    const steps = handsOver ? [transfers] : [reading, { text: 'Done.' }]
    const first = defineAgent({
      ...{ name: 'first', instructions: 'Look.', tools, compaction, handoffs: [second] },
      model: scriptedModel([looks, looks, ...steps]),
    })
    const run = createRuntime({ ledger, agents: [first] }).run(first, 'Look.')
    own = run.id
    expect(await run.result).toMatchObject({ agent: handsOver ? 'second' : 'first' })
    expect(await answered(ledger, run.id)).toMatch(isRead)
    expect(JSON.stringify(seen)).toContain('It looked.')
    expect(JSON.stringify(seen)).not.toContain(deriveToolCallId(run.id, 1, 1, 1))
  })

  it('reads nothing where the call belongs to no conversation', async () => {
    const { ledger, tools } = shop()
    const call = deriveToolCallId('01a1f640-bde3-73dc-bf21-6c8878abbb86' as RunId, 1, 1, 1)
    expect(await callTool(readResult({ ledger }), { call })).toMatchObject({ outcome: 'failed' })
    expect(tools).toHaveLength(2)
  })
})

describe('the messages that a tool is lent', () => {
  it('are those of the model, up to the one that asked, and cannot be changed', async () => {
    const lent: (readonly Message[])[] = []
    const peek = defineTool({
      name: 'peek',
      description: 'Peeks.',
      input: z.object({}),
      effect: 'read',
      execute: (_input, { messages }) => void lent.push(messages()),
    })
    const step = { toolCalls: [{ name: 'peek', input: {} }] }
    const model = scriptedModel([step, step, { text: 'Done.' }])
    const agent = defineAgent({ name: 'a', instructions: 'Peek.', model, tools: [peek] })
    await createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Go.').result
    expect(lent.map((messages) => messages.map(({ role }) => role))).toEqual([
      ['user', 'assistant'],
      ['user', 'assistant', 'tool', 'assistant'],
    ])
    expect(lent[1]?.slice(0, 3)).toEqual(model.requests[1]?.messages)
    const frozen = lent.flat().map((message) => Object.isFrozen(message))
    expect(new Set(frozen)).toEqual(new Set([true]))
    await callTool(peek, {})
    expect(lent[2]).toEqual([])
  })
})
