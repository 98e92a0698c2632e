// A process that ends by SIGKILL within a call of a tool that writes files: before or after the step that makes it true.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { createRuntime } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { filesAgent } from './files-agent.ts'

const [database = '', root = '', when = '', name = '', input = ''] = process.argv.slice(2)
const end = (): void => void process.kill(process.pid, 'SIGKILL')

const { renameSync } = fs
fs.renameSync = (from, to) => {
  if (when === 'before') end()
  renameSync(from, to)
  end()
}
const { link } = fs.promises
fs.promises.link = async (from, to) => {
  if (when === 'before') end()
  await link(from, to)
  end()
}
syncBuiltinESMExports()

const agent = filesAgent(root, [{ toolCalls: [{ name, input: JSON.parse(input) as object as never }] }])
const runtime = createRuntime({ ledger: sqliteLedger(database), agents: [agent] })
await runtime.run(agent, 'Write.').result
