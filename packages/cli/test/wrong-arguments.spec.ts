// What programs give in place of a host, a context or a run, where no compiler looks.
import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { runInteractively, createProcessContext, runCommandLine } from '@tallystick/cli'
import { ConfigurationError, createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'

const nothing = undefined as never
const stream = (): never => new PassThrough() as never
const host = { env: {}, cwd: () => '/here', stdin: stream(), stdout: stream(), stderr: stream() }
const context = createProcessContext(false, host)
const agent = defineAgent({ name: 'clerk', instructions: '', model: scriptedModel([{ text: 'Done.' }]) })
const run = createRuntime({ ledger: memoryLedger() }).run(agent, 'Go.')
const options = { ledgerPath: 'runs.db', drain: async () => {} }

it.each<readonly [string, () => unknown, string]>([
  [
    'one text for words',
    () => runCommandLine('list' as never, host),
    'runCommandLine: the list of words is a text',
  ],
  [
    'what is not a word',
    () => runCommandLine([1 as never], host),
    'the list of words[0] is 1; expected a text',
  ],
  ['no host', () => runCommandLine([], null as never), 'runCommandLine: the host is null; expected a host'],
  [
    'a host without its streams',
    () => createProcessContext(false, { env: {}, cwd: host.cwd } as never),
    'createProcessContext: the host is an object; expected a host, such as process',
  ],
  [
    'a time for a clock',
    () => createProcessContext(false, { ...host, now: 5 as never }),
    'the host is an object',
  ],
  [
    'no context',
    () => runInteractively(nothing, run, options),
    'runInteractively: the context is missing: give a context that createProcessContext made',
  ],
  [
    'a run id for a run',
    () => runInteractively(context, run.id as never, options),
    'the run is a text; expected a run',
  ],
  [
    'no way to stop the run',
    () => runInteractively(context, run, { ledgerPath: 'runs.db' } as never),
    'runInteractively: what it was given is an object; expected the options',
  ],
])('refuses %s', async (_name, act, message) => {
  const refusal = (async () => await act())()
  await expect(refusal).rejects.toThrow(ConfigurationError)
  await expect(refusal).rejects.toThrow(message)
})
