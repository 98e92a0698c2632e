// A coding agent on the terminal: files, programs, approvals, and a run that outlives the process.
//   node coding-agent.ts FOLDER 'Make the test pass.'   The same command after a crash continues the same run.
import { createInterface } from 'node:readline/promises'
import { createRuntime, defineAgent } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { type ScriptedReply, scriptedModel } from '@tallystick/testkit'
import { filesTools } from '@tallystick/tools/files'
import { shell } from '@tallystick/tools/shell'

const [root = '.', task = 'Make the test pass.'] = process.argv.slice(2)

// A script plays the model, so that this runs without a key: use anthropic('…') of @tallystick/providers/anthropic instead.
function reply(last: { readonly name: string; readonly outcome: string } | undefined): ScriptedReply {
  const call = (name: string, input: object) => ({ toolCalls: [{ name, input }] }) as ScriptedReply
  if (last === undefined) return call('read_file', { path: 'sum.mjs' })
  if (last.outcome === 'denied') return { text: 'The script says: you did not allow it, so I stop.' }
  if (last.name === 'read_file')
    return call('edit_file', { path: 'sum.mjs', oldText: 'a - b', newText: 'a + b' })
  if (last.name === 'shell' && last.outcome === 'success')
    return { text: 'The script says: the test passes now.' }
  // After a crash nobody knows how the test ended, and it is run again.
  return call('shell', { program: 'node', args: ['sum.test.mjs'] })
}
const model = scriptedModel(
  Array.from({ length: 20 }, () => ({ messages }) => {
    const last = messages.at(-1)
    return reply(last?.role === 'tool' ? last.results.at(-1) : undefined)
  }),
)

const agent = defineAgent({
  name: 'coder',
  instructions: 'You work on the code of this folder. Run the test before you say that it passes.',
  model,
  tools: [
    ...filesTools({ root, write: true, approval: 'always' }),
    shell({ root, programs: { node: { about: 'Runs a test.' } } }),
  ],
})
const ledger = sqliteLedger('coding-agent.db')
const runtime = createRuntime({ ledger, agents: [agent] })

// The key names the run: a process that starts with the same folder and task takes up where the last one died.
const run = runtime.run(agent, task, { idempotencyKey: `${root} ${task}` })
const terminal = createInterface({ input: process.stdin, output: process.stdout })
for (;;) {
  const { status, text, pendingApprovals } = await run.result
  if (status === 'done') {
    console.log(text)
    break
  }
  for (const asked of pendingApprovals) {
    const question = `${asked.name} ${JSON.stringify(asked.input)}\nyes, always or no? `
    const answer = (await terminal.question(question)).trim()
    const standing = answer === 'always' ? ({ for: 'session', expiresInMs: 3_600_000 } as const) : undefined
    if (answer === 'yes' || standing) await run.approve(asked, { by: 'me', standing })
    else await run.deny(asked, { by: 'me', reason: answer || 'no' })
  }
}
terminal.close()
await ledger.close()
