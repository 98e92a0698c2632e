import { createRuntime, defineAgent } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { anthropic } from '@tallystick/providers/anthropic'
import { defineTool } from '@tallystick/tools'
import { z } from 'zod'

const weather = defineTool({
  name: 'get_weather',
  description: 'The weather in a city, now.',
  input: z.object({ city: z.string() }),
  effect: 'read',
  execute: ({ city }) => `21 °C and dry in ${city}`,
})
const model = anthropic('claude-opus-4-8')
const agent = defineAgent({ name: 'assistant', instructions: 'Answer briefly.', model, tools: [weather] })

const run = createRuntime({ ledger: sqliteLedger('runs.db') }).run(agent, 'How warm is it in Seoul?')
run.textUpdates$.subscribe(({ type, text }) => type === 'text' && process.stdout.write(text))
console.log('\n%O', await run.result)
