import { createRuntime, defineAgent, memoryLedger, joinText } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { callTool, checkLaws, scriptedModel } from '@tallystick/testkit'
import { defineTool, dryRun } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toolRun } from './one-call.ts'

describe('dryRun', () => {
  const work = (): string => ''
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ euros: z.number() }),
    effect: 'write',
    approval: 'always',
    execute: () => {
      throw new Error('paid for real')
    },
  })

  const get = defineTool({
    name: 'get',
    description: 'Gets.',
    input: z.object({ n: z.number() }),
    effect: 'read',
    execute: ({ n }) => `got ${n}`,
  })

  it('describes writes instead of running them, on record as skipped, asks no person, and runs reads', async () => {
    const words = ({ tool: name, input }: { tool: string; input: JsonObject }): string =>
      name === 'pay' ? `${JSON.stringify(input['euros'])} euros would have been paid.` : ''
    const tools = dryRun([pay, get], { describe: words })
    const toolCalls = [
      { name: 'pay', input: { euros: 5 } },
      { name: 'get', input: { n: 1 } },
      { name: 'pay', input: { euros: 'five' } },
    ]
    const model = scriptedModel([{ toolCalls }, { text: 'Done.' }])
    const agent = defineAgent({ name: 'a', instructions: '', model, tools })
    const ledger = memoryLedger()
    const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Pay.')
    expect((await run.result).reason).toBe('answered')
    const events = await Array.fromAsync(ledger.read(run.id))
    expect(checkLaws(events)).toEqual([])
    const results = events.filter((event) => event.type === 'tool_result')
    expect(results.map(({ outcome }) => outcome).toSorted()).toEqual(['invalid_input', 'skipped', 'success'])
    const skipped = results.find(({ outcome }) => outcome === 'skipped')
    expect(joinText(skipped!.content)).toBe(
      'This is a dry run, in which nothing is changed. 5 euros would have been paid. A person would have been asked first. ' +
        'Continue as if it were done, and say in your answer that it was not.',
    )
    expect(events.filter(({ type }) => type === 'tool_started')).toHaveLength(1)
  })

  it('describes a write plainly where the words are no text, and cuts what is long', async () => {
    const text = async (describe: () => unknown): Promise<string> =>
      (await callTool(dryRun([pay], { describe: describe as never })[0]!, { euros: 5 })).text
    for (const none of ['', 5, undefined])
      expect(await text(() => none)).toContain('pay would have been called with {"euros":5}.')
    expect(await text(() => 'x'.repeat(2_000))).toContain(` ${'x'.repeat(2_000)} A person`)
    expect(await text(() => 'x'.repeat(2_001))).toMatch(/ x{1,1999} … \(cut\) A person/)
  })

  it('is checked when it is made', () => {
    expect(() => dryRun([{}] as never)).toThrow('dryRun: tools[0] is an object; expected a tool')
    expect(() => dryRun([pay], { describe: 'x' as never })).toThrow('dryRun: describe is a text')
    expect(() => dryRun([pay], { words: work } as never)).toThrow('dryRun: words is not an option')
  })

  it('leaves a handoff as it is', () => {
    const over = { ...pay, handoff: { to: 'other' } } as never
    expect(dryRun([over])[0]).toBe(over)
  })

  it('never runs a write, and describes it plainly where no words are given', async () => {
    const [dry] = dryRun([pay])
    expect(() => dry!.run(toolRun({ euros: 5 }))).toThrow(/part of a dry run/)
    expect((await callTool(dry!, { euros: 5 })).text).toContain(
      'pay would have been called with {"euros":5}.',
    )
    const [broken] = dryRun([pay], {
      describe: () => {
        throw new Error('oops')
      },
    })
    expect((await callTool(broken!, { euros: 5 })).text).toContain(
      'pay would have been called with {"euros":5}.',
    )
  })
})
