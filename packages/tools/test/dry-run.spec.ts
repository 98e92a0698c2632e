import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { callTool, checkLaws, scriptedModel } from '@tallystick/core/testing'
import { textOf, type JsonObject } from '@tallystick/core/vocabulary'
import { defineTool, dryRun } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toolRun } from './one-call.ts'

describe('dryRun', () => {
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
    expect(textOf(skipped!.content)).toBe(
      'This is a dry run, in which nothing is changed. 5 euros would have been paid. A person would have been asked first. ' +
        'Continue as if it were done, and say in your answer that it was not.',
    )
    expect(events.filter(({ type }) => type === 'tool_started')).toHaveLength(1)
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
