import { fileURLToPath } from 'node:url'
import { defineAgent, type Agent, type ModelRequest } from '@tallystick/core'
import { hostileTexts, scriptedModel, testTool, type ScriptedReply } from '@tallystick/testkit'

/** The configuration that gives the villain. */
export const villainConfig: string = fileURLToPath(import.meta.resolve('./villain.config.ts'))

/** Everything that once did something to a terminal, at once. */
export const hostile: string = hostileTexts
  .filter(({ border }) => border === 'terminal')
  .map(({ text }) => text)
  .join(' ')

/** A model, tools and policies that say nothing but what does something to a terminal. */
export function villain(): Agent {
  const steps: readonly ScriptedReply[] = [
    {
      reasoning: hostile,
      text: hostile,
      toolCalls: [
        { name: 'look', input: { [hostile]: hostile } },
        { name: hostile, input: {} },
        { name: 'look', input: hostile },
      ],
    },
    { text: hostile, toolCalls: [{ name: 'pay', input: { memo: hostile } }] },
    { text: `Bye. ${hostile}` },
  ]
  const answering = Array.from(
    { length: 99 },
    () =>
      ({ messages }: ModelRequest): ScriptedReply =>
        steps[messages.filter(({ role }) => role === 'tool').length] ?? {},
  )
  const look = testTool({
    name: 'look',
    run: (_call, report) => {
      report.progress({ [hostile]: hostile })
      return hostile
    },
  })
  const pay = testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: 'ask', reason: hostile }),
    run: () => {
      throw new Error(hostile)
    },
  })
  return defineAgent({
    name: 'villain',
    instructions: hostile,
    model: scriptedModel(answering),
    tools: [look, pay],
  })
}
