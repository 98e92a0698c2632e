// The messages that READMEs show are those that are printed.
import { readFileSync } from 'node:fs'
import { defineAgent } from '@tallystick/core'
import { propertyTest, scriptedModel } from '@tallystick/testkit'
import { contractOf } from '@tallystick/testkit/contract'
import { defineTool } from '@tallystick/tools'
import { expect, it } from 'vitest'
import * as z from 'zod'
import { createPayingTool } from '../src/tools.ts'
import { listBroken } from './list-broken.ts'

/** The message that a README shows, and one that was printed: without the lines that the README leaves out at `…`. */
function readShown(path: string, message = ''): readonly [sample: string, printed: string] {
  const text = readFileSync(new URL(path, import.meta.url), 'utf8')
  const [, sample = 'no sample'] = /^```text\n(Not so: [^]*?)\n```$/m.exec(text) ?? []
  const [beginning = '', end] = sample.split(/\n *…(?=\n)/)
  if (end === undefined) return [withoutTimes(sample), withoutTimes(message)]
  const printed = message.slice(0, beginning.length) + message.slice(-end.length)
  return [withoutTimes(beginning + end), withoutTimes(printed)]
}

/** Ids begin with the time, which is later for each run that the process has played before. */
function withoutTimes(message: string): string {
  return message.replaceAll(/\b(call_|)[0-9a-f]{8}-?[0-9a-f]{4}(?=-?7[0-9a-f]{3})/g, '$1…')
}

it('the README of the broken examples shows what is said of the tool that writes twice', async () => {
  const payments: string[] = []
  const tool = createPayingTool(payments)
  const cases = contractOf.tool(tool, { inputs: [{ order: 'A-7' }], effects: () => payments.length })
  const [sample, printed] = readShown('../README.md', Object.values(await listBroken(cases))[0])
  expect(printed).toBe(sample)
})

it('the README of the testkit shows what is said of its example without the idempotencyKey', async () => {
  const payments: number[] = []
  const refund = defineTool({
    name: 'refund',
    description: 'Pays an order back.',
    input: z.object({ order: z.string(), euros: z.number().min(0).max(100) }),
    effect: 'write',
    recovery: 'rerun',
    execute: ({ euros }) => {
      payments.push(euros)
      return `${euros} euros are paid back.`
    },
  })
  const agent = defineAgent({
    ...{ name: 'support', instructions: 'Help.', model: scriptedModel([]), tools: [refund] },
  })
  const tested = propertyTest(agent, {
    tools: { refund: { effects: () => payments.length } },
    seed: 7,
    // The example does not depend on how long the machine takes.
    shrinkMs: 60_000,
  })
  const { message } = await tested.then(
    () => new Error('nothing was found'),
    (error: Error) => error,
  )
  const [sample, printed] = readShown('../../../packages/testkit/README.md', message)
  expect(printed).toBe(sample)
})
