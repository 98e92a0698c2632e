import {
  ConfigurationError,
  createRuntime,
  defineAgent,
  foldedHistory,
  handoff,
  memoryLedger,
  type RunId,
  joinText,
} from '@tallystick/core'
import { type TodoItem, readTodoItems, formatTodo } from '@tallystick/core/internal'
import type { EventOf } from '@tallystick/core/vocabulary'
import { callTool, sampleRunId, scriptedModel, testTool } from '@tallystick/testkit'
import { todoList } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'

const read: TodoItem = { text: 'Read the report', state: 'done' }
const write: TodoItem = { text: 'Write the summary', state: 'under_way' }
const send: TodoItem = { text: 'Send it', state: 'open' }

/** Runs on one ledger, each of which calls the tool with these inputs, one a turn. */
function stage() {
  const ledger = memoryLedger()
  const tools = [todoList({ ledger, maxItems: 3 })]
  const play = async (inputs: readonly object[], given: object = {}) => {
    const calls = inputs.map((input) => ({ toolCalls: [{ name: 'todo_list', input: input as never }] }))
    const agent = defineAgent({
      ...{ name: 'writer', instructions: 'Write.', tools },
      model: scriptedModel([...calls, { text: 'Done.' }]),
    })
    const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.', given).result
    const events = await Array.fromAsync(ledger.read(runId))
    const results = events.filter((event) => event.type === 'tool_result')
    return { runId, results, last: joinText(results.at(-1)?.projected ?? results.at(-1)?.content ?? []) }
  }
  return { play, ledger }
}

describe('todoList', () => {
  it('shows the whole list that a call gives, and the result on record is that list', async () => {
    const { results, last } = await stage().play([{ items: [read, write, send] }])
    expect(last).toBe('1 of 3 done\n[x] Read the report\n[>] Write the summary\n[ ] Send it')
    expect(readTodoItems(results[0]!.content)).toEqual([read, write, send])
  })

  it('shows the last list where a call gives none, also after one that did not fit', async () => {
    const { play } = stage()
    const tooLong = { items: [read, write, send, send] }
    const { results, last } = await play([{}, { items: [send] }, { items: [read] }, tooLong, {}])
    expect(results.map(({ outcome }) => outcome)).toEqual([
      ...['success', 'success', 'success', 'invalid_input', 'success'],
    ])
    expect(joinText(results[0]!.projected ?? [])).toBe('The list is empty.')
    expect(last).toBe('1 of 1 done\n[x] Read the report')
    expect((await play([{ items: [read] }, { items: [] }, {}])).last).toBe('The list is empty.')
  })

  it('continues the list of the session, and of the run that a branch begins with, up to there', async () => {
    const { play } = stage()
    const first = await play([{ items: [send] }, { items: [read] }], { sessionId: 'a' })
    expect((await play([{}], { sessionId: 'a' })).last).toContain('[x] Read the report')
    const [one] = first.results
    const branch = { sessionId: 'b', from: { runId: first.runId, atSeq: one!.seq + 1 } }
    expect((await play([{}], branch)).last).toBe('0 of 1 done\n[ ] Send it')
    expect((await play([{}], { sessionId: 'c' })).last).toBe('The list is empty.')
    const atIt = { sessionId: 'd', from: { runId: first.runId, atSeq: one!.seq } }
    expect((await play([{}], atIt)).last).toBe('0 of 1 done\n[ ] Send it')
  })

  it('does not show a list from before an edit of the past, or a handoff whose filter hid it', async () => {
    const { play, ledger } = stage()
    const first = await play([{ items: [send] }], { sessionId: 'a' })
    const edit = {
      of: first.runId,
      edits: [{ index: 0, message: { role: 'user', parts: [{ type: 'text', text: 'x' }] } }],
    }
    expect((await play([{}], { sessionId: 'a', edit })).last).toBe('The list is empty.')
    expect((await play([{ items: [read] }, {}], { sessionId: 'a', edit: undefined })).last).toContain(
      'Read the report',
    )

    const tools = [todoList({ ledger })]
    const call = (name: string, input: object) => ({ toolCalls: [{ name, input: input as never }] })
    for (const filter of [undefined, foldedHistory]) {
      const model = scriptedModel([call('todo_list', {}), { text: 'Done.' }])
      const next = defineAgent({ name: 'next', instructions: 'Go on.', model, tools })
      const front = defineAgent({
        ...{ name: 'front', instructions: 'Begin.', tools, handoffs: [handoff(next, { filter })] },
        model: scriptedModel([call('todo_list', { items: [send] }), call('transfer_to_next', {})]),
      })
      await createRuntime({ ledger, agents: [front] }).run(front, 'Go.').result
      const shown = JSON.stringify(model.requests.at(-1)?.messages.at(-1))
      expect(shown).toContain(filter ? 'The list is empty.' : '[ ] Send it')
    }
  })

  it.each([
    ['is continued from the last of fifty runs', 49, JSON.stringify({ items: [send] })],
    ['is not looked for over more', 50, JSON.stringify({ items: [] })],
  ])('%s', async (_what, between, text) => {
    // The run is a branch of the first run, that one of the second, and so on; the last of them has the list.
    const chain = Array.from({ length: between + 1 }, (_, index) => sampleRunId(index))
    const ledger = {
      async *read(runId: RunId) {
        const parent = { runId: chain[chain.indexOf(runId) + 1], seq: 9, relation: 'branch' }
        yield { type: 'run_started', seq: 1, parent } as EventOf<'run_started'>
      },
      async *find({ runId }: { readonly runId?: RunId }) {
        const content = [{ type: 'text', text: JSON.stringify({ items: [send] }) }]
        if (runId === chain.at(-1))
          yield {
            type: 'tool_result',
            seq: 9,
            name: 'todo_list',
            content,
          } as unknown as EventOf<'tool_result'>
      },
    }
    const called = await callTool(todoList({ ledger }), {}, { runId: chain[0]! })
    expect(called.text).toBe(text)
  })

  it('is not taken from the result of another tool', async () => {
    const ledger = memoryLedger()
    const other = testTool({ name: 'other', run: () => JSON.stringify({ items: [send] }) })
    const model = scriptedModel([
      { toolCalls: [{ name: 'other', input: {} }] },
      { toolCalls: [{ name: 'todo_list', input: {} }] },
      { text: 'Done.' },
    ])
    const tools = [todoList({ ledger }), other]
    const agent = defineAgent({ name: 'writer', instructions: 'Write.', model, tools })
    await createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.').result
    expect(JSON.stringify(model.requests.at(-1)?.messages.at(-1))).toContain('The list is empty.')
  })

  it('keeps an item on one line', async () => {
    const { last } = await stage().play([{ items: [{ text: ' a\n[x]\u001b[31m  b\u202e ', state: 'open' }] }])
    expect(last).toBe('0 of 1 done\n[ ] a [x] b')
  })

  it.each([
    { items: [{ text: '', state: 'open' }] },
    { items: [{ text: 'x'.repeat(201), state: 'open' }] },
    { items: [{ text: 'a', state: 'finished' }] },
    { items: [{ text: 'a' }] },
    { items: 'a' },
    { list: [] },
  ])('refuses %j', async (input) => {
    expect((await stage().play([input])).results[0]?.outcome).toBe('invalid_input')
  })

  it('reads, one call at a time, and is checked when it is made', () => {
    const ledger = memoryLedger()
    expect(todoList({ ledger })).toMatchObject({ name: 'todo_list', effect: 'read', serial: 'todo_list' })
    expect(todoList({ ledger }).inputSchema).toMatchObject({ properties: { items: { maxItems: 50 } } })
    for (const maxItems of [1, 200]) expect(() => todoList({ ledger, maxItems })).not.toThrow()
    for (const wrong of [
      {},
      { ledger: {} },
      { ledger, maxItems: 0 },
      { ledger, maxItems: 201 },
      { ledger, maxItems: 1.5 },
    ]) {
      expect(() => todoList(wrong as never)).toThrow(ConfigurationError)
    }
  })
})

describe('the list in a result', () => {
  it('is read from nothing else', () => {
    const list = (text: string) => readTodoItems([{ type: 'text', text }])
    expect(list('{"items":[{"text":"a","state":"open"}]}')).toEqual([{ text: 'a', state: 'open' }])
    const others = [
      '',
      'x',
      '1',
      'null',
      '{"items":1}',
      '{"items":[1]}',
      '{"items":[{"text":1,"state":"open"}]}',
    ]
    for (const other of [...others, '{"items":[{"text":"a","state":"x"}]}'])
      expect(list(other)).toBeUndefined()
    expect(readTodoItems([])).toBeUndefined()
    expect(formatTodo([])).toEqual(['0 of 0 done'])
  })
})
