import { expect, it } from 'vitest'
import { scriptedModel } from '@tallystick/testkit'
import { stage } from './stage.ts'

it.each<readonly [string, unknown, string]>([
  ['a step for a list', { text: 'Hi.' }, 'scriptedModel: steps is an object; expected a list'],
  ['a text for a step', ['Hi.'], 'scriptedModel: steps[0] is a text; expected an object'],
  [
    'a word of another library',
    [{ content: 'Hi.' }],
    'steps[0].content is not an option. Did you mean steps[0].text?',
  ],
  [
    'calls that are not listed',
    [{ toolCalls: { name: 'x' } }],
    'steps[0].toolCalls is an object; expected a list',
  ],
  ['a call without input', [{ toolCalls: [{ name: 'x' }] }], 'steps[0].toolCalls[0].input is missing'],
  ['usage that is unnamed', [{ usage: { input: 5 } }], 'Did you mean steps[0].usage.inputTokens?'],
  ['usage in words', [{ usage: { inputTokens: '5' } }], 'steps[0].usage.inputTokens is a text'],
  ['an unknown failure', [{ fail: 'rate_limit' }], "Did you mean 'rate_limited'?"],
])('a scripted model refuses %s', (_name, steps, message) => {
  expect(() => scriptedModel(steps as never)).toThrow(message)
})

it('a step that a function makes fails as a broken adapter does, and says what is wrong', async () => {
  const set = stage({ steps: [(() => ({ texts: 'Hi.' })) as never] })
  const result = await set.play()
  expect(result).toMatchObject({ reason: 'model_failed' })
  expect(result.detail).toContain('texts is not an option. Did you mean text?')
})
