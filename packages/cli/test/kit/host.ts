import { fileURLToPath } from 'node:url'
import { defineAgent, joinText, type Agent, type ModelRequest } from '@tallystick/core'
import { scriptedModel, testTool, type ScriptedReply } from '@tallystick/testkit'

const untilSignalled = testTool({
  name: 'wait',
  run: () => {
    const reported = new Promise<string>((resolve) => process.once('SIGTERM', () => resolve('told')))
    process.stderr.write('waiting to be told\n')
    return reported
  },
})

/** The configuration that gives the agents of this file. */
export const hostConfig: string = fileURLToPath(import.meta.resolve('./host.config.ts'))

/**
 * Agents that say how much they received, that never end their answer, that look three times, that wait until their
 * process gets the signal to end, and that cannot be asked.
 */
export function hostAgents(): readonly Agent[] {
  const usage = { inputTokens: 1_000_000, outputTokens: 500_000 }
  const named = (name: string, steps: Parameters<typeof scriptedModel>[0]): Agent =>
    defineAgent({
      name,
      instructions: '',
      model: scriptedModel(steps, 'host-model'),
      tools: [testTool({ name: 'look', run: ({ input }) => JSON.stringify(input) }), untilSignalled],
      retry: { maxAttempts: 1 },
    })
  const looking = ({ messages }: ModelRequest): ScriptedReply => {
    const seen = messages.filter(({ role }) => role === 'tool').length
    return seen === 3 ? { text: 'Seen.' } : { toolCalls: [{ name: 'look', input: { place: seen } }] }
  }
  return [
    named(
      'host',
      Array.from({ length: 9 }, () => ({ messages }) => {
        const said = messages.flatMap((message) => (message.role === 'user' ? [joinText(message.parts)] : []))
        return { text: `Told: ${said.join(' | ')}`, usage }
      }),
    ),
    named('staller', [{ text: 'Let me th', hang: true }]),
    named('looker', [looking, looking, looking, looking]),
    named('waiter', [{ text: 'I wait. ', toolCalls: [{ name: 'wait', input: {} }] }]),
    named('stranger', [{ fail: 'authentication' }]),
  ]
}
