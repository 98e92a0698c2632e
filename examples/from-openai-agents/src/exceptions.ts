// There: MaxTurnsExceededError, ModelBehaviorError, GuardrailExecutionError, each with the state. Here an ending is a result:
// `reason` says which, and `toInput` continues from what was done.
import assert from 'node:assert/strict'
import {
  type Agent,
  createRuntime,
  defineAgent,
  defineGuardrail,
  memoryLedger,
  type RunResult,
} from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { z } from 'zod'

const search = defineTool({
  name: 'search',
  description: 'Searches the archive.',
  input: z.object({ words: z.string() }),
  effect: 'read',
  execute: ({ words }) => `nothing about ${words}`,
})
const calls = (words: string) => ({ toolCalls: [{ name: 'search', input: { words } }] })
const broken = defineGuardrail({
  name: 'judge',
  on: 'input',
  check: () => {
    throw new Error('the judge is down')
  },
})
// Scripts play the models. At a limit, a last call without tools writes the answer; with `onLimit: 'stop'` there is none.
const common = { instructions: 'Research.', tools: [search] }
const busy = defineAgent({
  ...common,
  name: 'busy',
  limits: { maxTurns: 2, onLimit: 'stop' },
  model: scriptedModel([calls('tallies'), calls('sticks'), { text: 'The script says: nothing was found.' }]),
})
const down = defineAgent({ ...common, name: 'down', model: scriptedModel([{ fail: 'authentication' }]) })
const unfit = defineAgent({
  ...common,
  name: 'unfit',
  output: z.object({ page: z.number() }),
  maxOutputRepairs: 1,
  model: scriptedModel([{ text: 'page seven' }, { text: '{ "page": "seven" }' }]),
})
const guarded = defineAgent({ ...common, name: 'guarded', guardrails: [broken], model: scriptedModel([]) })
const runtime = createRuntime({ ledger: memoryLedger(), agents: [busy, down, unfit, guarded] })

const reported = ({ reason, failure, detail, turns }: RunResult): string =>
  `${reason}: ${failure ? `${failure.class}, ${failure.retryable ? 'try later' : 'mend it'}` : (detail ?? `${turns} turns`)}`
const stopped = await runtime.run(busy, 'Find tally sticks.').result
const endings = [reported(stopped)]
const others: readonly Agent<unknown>[] = [down, unfit, guarded]
for (const agent of others) endings.push(reported(await runtime.run(agent, 'Find it.').result))
console.log(endings.join('\n'))
// Earlier work is kept, and another run continues from it.
const resumed = await runtime.run(busy, stopped.toInput('Tell me what you have.')).result
console.log(resumed.text)
assert.deepEqual(endings, [
  'turn_limit: 2 turns',
  'model_failed: authentication, mend it',
  'output_invalid: page: Invalid input: expected number, received string',
  'guardrail: judge: it failed: the judge is down',
])
assert.equal(resumed.reason, 'answered')
// There is an exception if the caller's own code is at fault: an unknown agent, an invalid option.
assert.throws(() => runtime.run(busy, '', { limits: { maxTurns: -1 } }), /maxTurns/)
