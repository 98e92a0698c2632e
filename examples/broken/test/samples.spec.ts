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

/** Requires that a README shows a message: as it is, but for lines that it leaves out at `…`. */
function expectShown(path: string, message: string | undefined): void {
  const text = readFileSync(new URL(path, import.meta.url), 'utf8')
  const [, sample = 'no sample'] = /^```text\n(Not so: [^]*?)\n```$/m.exec(text) ?? []
  const [beginning = '', end = beginning] = sample.split(/\n *…(?=\n)/)
  expect(message?.slice(0, beginning.length)).toBe(beginning)
  expect(message?.slice(-end.length)).toBe(end)
}

it('the README of the broken examples shows what is said of the tool that writes twice', async () => {
  const payments: string[] = []
  const tool = createPayingTool(payments)
  const cases = contractOf.tool(tool, { inputs: [{ order: 'A-7' }], effects: () => payments.length })
  expectShown('../README.md', Object.values(await listBroken(cases))[0])
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
  expectShown('../../../packages/testkit/README.md', message)
})
