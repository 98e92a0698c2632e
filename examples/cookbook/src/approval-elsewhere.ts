// Three processes and one file: the first asks for permission and ends, the second grants it, the third continues.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { defineTool, whenInput } from '@tallystick/tools'
import { z } from 'zod'

const [role, path = ''] = process.argv.slice(2)
const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  input: z.object({ euros: z.number() }),
  effect: 'write',
  approval: whenInput(({ euros }) => euros > 50, 'more than 50 euros'),
  execute: ({ euros }) => `process ${process.pid} paid ${euros} euros back`,
})
// A script plays the model: it asks for the tool once, then repeats what the result says.
const model = scriptedModel([
  ({ messages }) =>
    messages.length === 1
      ? { toolCalls: [{ name: 'refund', input: { euros: 80 } }] }
      : { text: `The script reads: ${JSON.stringify(messages.at(-1))}` },
])
const agent = defineAgent({ name: 'support', instructions: 'Help.', model, tools: [refund] })

if (role === undefined) {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-cookbook-'))
  process.once('exit', () => rmSync(folder, { recursive: true }))
  const play = (name: string): string =>
    execFileSync(process.execPath, [import.meta.filename, name, join(folder, 'runs.db')]).toString()
  assert.equal(play('asks'), 'suspended: refund waits, more than 50 euros\n')
  assert.equal(play('decides'), 'approved with 70 euros\n')
  const ended = play('carries on')
  assert.match(ended, /^answered: .*process \d+ paid 70 euros back/)
  console.log(ended)
} else {
  const ledger = sqliteLedger(path)
  const runtime = createRuntime({ ledger, agents: [agent] })
  if (role === 'asks') await runtime.run(agent, 'Three lamps arrived broken.').result
  const { runId, status, pendingApprovals } = (await Array.fromAsync(runtime.suspended()))[0]!
  const { toolCallId, attempt, inputDigest, name, reason } = pendingApprovals[0]!
  if (role === 'asks') console.log(`${status}: ${name} waits, ${reason}`)
  if (role === 'decides') {
    const asked = { toolCallId, attempt, inputDigest }
    const command = { type: 'approve', ...asked, by: 'maria', input: { euros: 70 } } as const
    await ledger.put(runId, { key: crypto.randomUUID(), at: Date.now(), command })
    console.log('approved with 70 euros')
  }
  if (role === 'carries on') {
    const result = await runtime.resume(runId).result
    console.log(`${result.reason}: ${result.text}`)
  }
  await ledger.close()
}
