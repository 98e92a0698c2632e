// A process that resumes runs: each id on stdin at once, with a tool that writes into a file what it does. It says on
// stdout, a JSON line a run, how that went. Usage: approval-child.ts <ledger> <world> <options as JSON>
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { createRuntime, LedgerConflictError, LedgerUnavailableError } from '@tallystick/core'
import { sqliteLedger, type SqliteLedgerOptions } from '@tallystick/ledger/sqlite'
import { payingAgent } from './paying-agent.ts'

const [path = '', world = '', options = '{}'] = process.argv.slice(2)
const ledger = sqliteLedger(path, JSON.parse(options) as SqliteLedgerOptions)
const agent = payingAgent((runId) => appendFileSync(world, `${runId}\n`))
const runtime = createRuntime({ ledger, agents: [agent] })

async function ending(runId: string): Promise<string> {
  try {
    return (await runtime.resume(runId).result).reason ?? 'suspended'
  } catch (error) {
    if (error instanceof LedgerConflictError) return 'conflict'
    if (error instanceof LedgerUnavailableError && error.message.includes('is being written')) return 'busy'
    throw error
  }
}

const say = (line: unknown): boolean => process.stdout.write(`${JSON.stringify(line)}\n`)
say('open')
for await (const runId of createInterface({ input: process.stdin })) say(await ending(runId))
await ledger.close()
