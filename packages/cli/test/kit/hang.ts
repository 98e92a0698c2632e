// A process that drives a run whose model never ends its answer. Says so on stdout once it is at it.
import { createRuntime, defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'

const [path = ''] = process.argv.slice(2)
const model = scriptedModel([{ text: 'Let me th', hang: true }])
const agent = defineAgent({ name: 'host', instructions: '', model })
const run = createRuntime({ ledger: sqliteLedger(path) }).run(agent, 'Hello.')
run.events$.subscribe(({ type }) => type === 'assistant_text_delta' && process.stdout.write('hanging\n'))
process.stdin.resume()
