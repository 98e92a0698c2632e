import { createRuntime, defineAgent } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { anthropic } from '@tallystick/providers/anthropic'
import { filesTools } from '@tallystick/tools/files'

const model = anthropic('claude-opus-4-8')
const tools = filesTools({ root: '.' })
const agent = defineAgent({ name: 'reader', instructions: 'Answer briefly.', model, tools })

const run = createRuntime({ ledger: sqliteLedger('runs.db') }).run(agent, 'What does package.json install?')
run.textUpdates$.subscribe(({ type, text }) => type === 'text' && process.stdout.write(text))
console.log('\n%O', await run.result)
