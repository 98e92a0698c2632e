// There: an input guardrail that asks another agent, and an output guardrail; each throws when it trips. Here: an ending.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, defineGuardrail, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { z } from 'zod'

// Scripts play both models: the first judges, the second answers.
const judge = defineAgent({
  name: 'homework judge',
  instructions: 'Say whether the user wants homework in mathematics done.',
  output: z.object({ isHomework: z.boolean(), why: z.string() }),
  model: scriptedModel(
    Array.from({ length: 3 }, () => ({ messages }) => {
      const isHomework = JSON.stringify(messages).includes('solve for x')
      return { text: JSON.stringify({ isHomework, why: isHomework ? 'an equation' : 'a question' }) }
    }),
  ),
})
const homework = defineGuardrail({
  name: 'homework',
  on: 'input',
  // The answer is written in parallel, as with runInParallel. A block discards it, and no tool starts before the verdict.
  beside: true,
  async check({ text }) {
    const { output } = await runtime.run(judge, text).result
    if (output === undefined) return { block: 'the judge gave no verdict' }
    return output.isHomework ? { block: output.why } : 'pass'
  },
})
const secrets = defineGuardrail({
  name: 'internal numbers',
  on: 'output',
  check: ({ text }) => (/\bINT-\d+\b/.test(text) ? { block: 'an internal number' } : 'pass'),
})
const support = defineAgent({
  name: 'support',
  instructions: 'Help customers.',
  guardrails: [homework, secrets],
  model: scriptedModel([{ text: 'x is 4.' }, { text: 'We open at nine.' }, { text: 'Ask for INT-4711.' }]),
})
const runtime = createRuntime({ ledger: memoryLedger(), agents: [support, judge] })

const endings: string[] = []
for (const said of ['Can you solve for x: 2x = 8?', 'When do you open?', 'Whom do I ask?']) {
  const { reason, detail, text } = await runtime.run(support, said).result
  endings.push(reason === 'answered' ? `answered: ${text}` : `${reason}: ${detail}`)
}
console.log(endings.join('\n'))
assert.deepEqual(endings, [
  'guardrail: homework: an equation',
  'answered: We open at nine.',
  'guardrail: internal numbers: an internal number',
])
