import { ConfigurationError, createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { toA2a, toAgUi, toOpenAiChat, toOpenAiResponse, toUiMessages, createServer } from '@tallystick/server'
import { nodeHandler, serve } from '@tallystick/server/node'
import { scriptedModel } from '@tallystick/testkit'
import { from } from 'rxjs'
import { expect, it } from 'vitest'

// What is given in place of a stream of events or a server, where no compiler looks.

const nothing = undefined as never
const list = [] as never
const events$ = from([])

it.each<readonly [string, () => unknown, string]>([
  [
    'a list of events for UI messages',
    () => toUiMessages(list),
    'toUiMessages: the stream of events is a list; expected an Observable of the events of a run',
  ],
  ['no events for AG-UI', () => toAgUi(nothing), 'toAgUi: the stream of events is missing: give an Obs'],
  ['a list of events for A2A', () => toA2a(list), 'toA2a: the stream of events is a list'],
  ['no events for a chat', () => toOpenAiChat(nothing), 'toOpenAiChat: the stream of events is missing'],
  [
    'a list of events for a response',
    () => toOpenAiResponse(list),
    'toOpenAiResponse: the stream of events is a list',
  ],
  [
    'a name that AG-UI does not know',
    () => toAgUi(events$, { thread: 'one' } as never),
    'toAgUi: thread is not an option',
  ],
  ['messages that are none', () => toAgUi(events$, { messages: ['Hi'] as never }), 'messages[0] is a text'],
  ['no names for a chat', () => toOpenAiChat(events$, null as never), 'what it was given is null'],
  [
    'a model for the name of one',
    () => toOpenAiResponse(events$, { model: {} as never }),
    'toOpenAiResponse: model is an object; expected a text',
  ],
  [
    'no server to listen with',
    () => serve(nothing),
    'serve: the server is missing: give the server that createServer made',
  ],
  ['a server that cannot drain', () => serve({ fetch } as never), 'serve: the server is an object'],
  ['no server to answer with', () => nodeHandler(nothing), 'nodeHandler: the server is missing'],
])('refuses %s', async (_name, act, message) => {
  const refusal = (async () => await act())()
  await expect(refusal).rejects.toThrow(ConfigurationError)
  await expect(refusal).rejects.toThrow(message)
})

const ledger = memoryLedger()
const sound = { ledger, runtime: createRuntime({ ledger }), agents: [] }

it.each([
  [
    'a runtime that is none',
    { runtime: {} },
    'runtime is an object; expected a runtime, such as createRuntime(',
  ],
  ['a ledger for the runtime', { runtime: ledger }, 'runtime is an object; expected a runtime'],
  [
    'a runtime for the ledger',
    { ledger: sound.runtime },
    'ledger is an object; expected the ledger of the runtime',
  ],
  [
    'another ledger than the runtime has',
    { ledger: memoryLedger() },
    'ledger is not the ledger of the runtime',
  ],
  ['a path for the ledger', { ledger: 'runs.db' }, 'ledger is a text; expected the ledger of the runtime'],
])('a server is refused with %s, not at its first request', (_name, wrong, message) => {
  const make = (): unknown => createServer({ ...sound, ...wrong } as never)
  expect(make).toThrow(ConfigurationError)
  expect(make).toThrow(message)
})

it('given no ledger, a server serves that of its runtime', async () => {
  const agent = defineAgent({
    name: 'teller',
    instructions: 'Answer.',
    model: scriptedModel([{ text: 'Yes.' }]),
  })
  const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent] })
  const { runId } = await runtime.run(agent, 'Well?').result
  const server = createServer({
    runtime,
    agents: [agent],
    authorize: () => ({ name: 'ada', sees: 'everything' }),
  })
  const response = await server.fetch(new Request(`http://localhost/runs/${runId}`))
  expect(await response.json()).toMatchObject({ runId, status: 'done', text: 'Yes.' })
})
