// Transforms of replies that fail, and options of which none could be made.
import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  outputMask,
  type OutputStreamOptions,
  outputTransform,
  type RuntimeEvent,
} from '@tallystick/core'
import { checkLaws, manualClock, scriptedModel, waitUntilSettled } from '@tallystick/testkit'
import { ofType, recorded } from './stage.ts'

const cards = outputMask({ name: 'cards', pattern: /\d{4}-\d{4}/g, window: 9, replacement: '****' })
const secret = /4242-4242/
const shown = (events: readonly RuntimeEvent[]): string =>
  ofType(events, 'assistant_text_delta')
    .map((event) => event.text)
    .join('')

describe('transforms at fault', () => {
  const failing = (show: (said: string) => string): OutputStreamOptions => ({
    transforms: [outputTransform({ name: 'broken', show })],
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('no rule for this')
      },
      /show of outputTransform \(broken\) threw: no rule for this\..*The rest of the reply is not shown/,
    ],
    [
      'answers a promise',
      () => Promise.resolve('later') as unknown as string,
      /show of outputTransform \(broken\) returned a promise/,
    ],
    [
      'answers nothing',
      () => undefined as unknown as string,
      /show of outputTransform \(broken\): its answer is missing: give a text/,
    ],
  ])(
    'given one that %s, then the result rejects, nothing is shown past it, and a corrected one continues',
    async (_how, show, message) => {
      const [clock, ledger] = [manualClock(), memoryLedger()]
      const agentWith = (outputStream: OutputStreamOptions) =>
        defineAgent({
          ...{ name: 'desk', instructions: 'Help.', outputStream },
          model: scriptedModel([{ text: 'Fine. And 4242-4242. And more.' }]),
        })
      const broken = agentWith(failing((said) => (said.includes('4242') ? show() : said)))
      const run = createRuntime({ ledger, host: { clock } }).run(broken, 'Go.')
      await expect(waitUntilSettled(clock, run.result)).rejects.toThrow(message)
      expect(shown(await recorded(ledger, run.id))).not.toMatch(secret)
      const resumed = createRuntime({
        ledger,
        agents: [agentWith({ transforms: [cards] })],
        host: { clock },
      }).resume(run.id)
      expect(await waitUntilSettled(clock, resumed.result)).toMatchObject({
        text: 'Fine. And ****. And more.',
      })
      expect(checkLaws(await recorded(ledger, run.id))).toEqual([])
    },
  )

  it('given one written by hand whose begin answers no writer, then the result rejects with what is missing', async () => {
    const clock = manualClock()
    const bare = { name: 'bare', begin: () => ({ write: (said: string) => said }) } as never
    const agent = defineAgent({
      name: 'desk',
      instructions: 'Help.',
      model: scriptedModel([{ text: 'Hi.' }]),
      outputStream: { transforms: [bare] },
    })
    const run = createRuntime({ ledger: memoryLedger(), host: { clock } }).run(agent, 'Go.')
    await expect(waitUntilSettled(clock, run.result)).rejects.toThrow(
      /begin of the transform bare of outputStream: its answer is an object; expected an object with the functions write and end/,
    )
  })

  it('given a writer that throws when it is looked at, then the result rejects with the name of its transform', async () => {
    const clock = manualClock()
    const hostile = new Proxy({} as never, {
      get: () => {
        throw new Error('do not look')
      },
    })
    const agent = defineAgent({
      ...{ name: 'desk', instructions: 'Help.', model: scriptedModel([{ text: 'Hi.' }]) },
      outputStream: { transforms: [{ name: 'hostile', begin: () => hostile }] },
    })
    const run = createRuntime({ ledger: memoryLedger(), host: { clock } }).run(agent, 'Go.')
    await expect(waitUntilSettled(clock, run.result)).rejects.toThrow(
      /begin of the transform hostile of outputStream threw: do not look/,
    )
  })

  it.each([
    [{ transforms: [{ name: 'x' }] }, /outputStream.transforms\[0\].begin is missing/],
    [{ transforms: cards }, /outputStream.transforms is an object; expected a list/],
    [{ transforms: [], nextTurn: 'none' }, /outputStream.nextTurn is 'none'; use one of 'written', 'shown'/],
    [{}, /outputStream.transforms is missing/],
  ])('given the options %j, then defineAgent refuses them', (outputStream, message) => {
    expect(() =>
      defineAgent({
        name: 'desk',
        instructions: 'Help.',
        model: scriptedModel([]),
        outputStream: outputStream as never,
      }),
    ).toThrow(message)
  })

  it.each([
    [
      { name: 'x', maxChars: 0, show: String },
      /maxChars is 0; expected a whole number of characters from 1 to 65536/,
    ],
    [{ name: 'x', maxChars: Infinity, show: String }, /maxChars is Infinity/],
    [{ name: 'x', unit: 'word', show: String }, /unit is 'word'/],
    [{ name: 'x', show: async () => '' }, /show is an async function/],
    [{ name: ' ', show: String }, /name is a text; expected a text that is not empty/],
  ])('given %j, then outputTransform refuses it', (options, message) => {
    expect(() => outputTransform(options as never)).toThrow(message)
  })

  it.each([
    [
      { name: 'x', pattern: 'a', window: 3, replacement: '' },
      /pattern is a text; expected a RegExp with the flag g/,
    ],
    [{ name: 'x', pattern: /a/g, window: 1e9, replacement: '' }, /window is 1000000000/],
    [
      { name: 'x', pattern: /a/gy, window: 3, replacement: '' },
      /pattern is an object; expected a RegExp with the flag g and without y/,
    ],
  ])('given %j, then outputMask refuses it', (options, message) => {
    expect(() => outputMask(options as never)).toThrow(message)
  })
})
