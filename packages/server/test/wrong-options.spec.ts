import { expect, it } from 'vitest'
import { ConfigurationError, createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { createServer } from '@tallystick/server'

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
