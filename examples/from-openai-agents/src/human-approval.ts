// There: a process writes result.state to a file and ends; another reads it, asks a person, and continues. Here the ledger is
// that file. Both calls wait; a person approves one and denies the other, in a second process.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { defineTool } from '@tallystick/tools'
import { z } from 'zod'

const weather = defineTool({
  name: 'get_weather',
  description: 'The weather in a city.',
  input: z.object({ city: z.string() }),
  effect: 'read',
  approval: 'always',
  execute: ({ city }) => `${city}: 21 °C`,
})
// A script plays the model: it asks for two cities, then repeats what the results say.
const model = scriptedModel([
  ({ messages }) =>
    messages.length === 1
      ? { toolCalls: ['Oakland', 'Tokyo'].map((city) => ({ name: 'get_weather', input: { city } })) }
      : { text: `The script reads: ${JSON.stringify(messages.at(-1))}` },
])
const agent = defineAgent({ name: 'weather', instructions: 'Answer.', model, tools: [weather] })

const [role, path = ''] = process.argv.slice(2)
if (role === undefined) {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-example-'))
  process.once('exit', () => rmSync(folder, { recursive: true }))
  const inProcess = (name: string): string =>
    execFileSync(process.execPath, [import.meta.filename, name, join(folder, 'runs.db')]).toString()
  assert.equal(inProcess('asks'), 'suspended: ["Oakland","Tokyo"] wait\n')
  const ended = inProcess('decides')
  assert.match(ended, /^answered: .*Oakland: 21 °C.*denied.*No weather of Japan/)
  console.log(ended)
} else {
  const ledger = sqliteLedger(path)
  const runtime = createRuntime({ ledger, agents: [agent] })
  if (role === 'asks') {
    const { status, pendingApprovals } = await runtime.run(agent, 'How warm is it there?').result
    console.log(`${status}: ${JSON.stringify(pendingApprovals.map(({ input }) => input['city']))} wait`)
  } else {
    const [waiting] = await Array.fromAsync(runtime.suspended())
    const run = runtime.resume(waiting!.runId)
    for (const call of waiting!.pendingApprovals) {
      if (call.input['city'] === 'Oakland') await run.approve(call, { by: 'maria' })
      else await run.deny(call, { by: 'maria', reason: 'No weather of Japan.' })
    }
    const { reason, text } = await run.result
    console.log(`${reason}: ${text}`)
  }
  await ledger.close()
}
