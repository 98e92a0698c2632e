import { expect, it } from 'vitest'
import { ConfigurationError, createRuntime, memoryLedger } from '@tallystick/core'
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
  ['a path for the ledger', { ledger: 'runs.db' }, 'ledger is a text; expected the ledger of the runtime'],
])('a server is refused with %s, not at its first request', (_name, wrong, message) => {
  const make = (): unknown => createServer({ ...sound, ...wrong } as never)
  expect(make).toThrow(ConfigurationError)
  expect(make).toThrow(message)
})
