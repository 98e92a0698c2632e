import { createRuntime, defineAgent, memoryLedger, joinText } from '@tallystick/core'
import type { Run, Tool } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import type { ScriptedStep } from '@tallystick/testkit'
import { checkLaws, manualClock, scriptedModel } from '@tallystick/testkit'
import { defineTool, whenInput } from '@tallystick/tools'
import { calculator } from '@tallystick/tools/calculator'
import { httpFetch } from '@tallystick/tools/http-fetch'
import { sqlQuery } from '@tallystick/tools/sql-query'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createShopDatabase } from './built-in/shop-database.ts'

const shop = createShopDatabase()
afterAll(() => shop.remove())

const calls: unknown[] = []
const order = defineTool({
  name: 'order',
  description: 'Orders goods.',
  input: z.object({ sku: z.string(), quantity: z.int().min(1).default(1) }),
  effect: 'write',
  approval: whenInput(({ quantity }) => quantity > 10, 'a large order'),
  execute(input, { idempotencyKey, attempt, progress }) {
    progress({ step: 'sent' })
    calls.push({ input, attempt, idempotencyKey })
    return { ordered: input.quantity }
  },
})

function start(steps: readonly ScriptedStep[], tools: readonly Tool[], clock = manualClock()): Run {
  const model = scriptedModel(steps)
  const agent = defineAgent({ name: 'buyer', instructions: 'Buy.', model, tools })
  return createRuntime({ ledger: memoryLedger(), agents: [agent], host: { clock } }).run(agent, 'Go.')
}

const asks = (name: string, input: JsonObject): ScriptedStep => ({ toolCalls: [{ name, input }] })

/** Every result of a run as `name outcome: text`, by name. Fails when a law does not hold for the run. */
async function resultsOf(run: Run): Promise<readonly string[]> {
  const results: string[] = []
  const events = []
  for await (const event of run) {
    events.push(event)
    if (event.type === 'tool_result')
      results.push(`${event.name} ${event.outcome}: ${joinText(event.content)}`)
  }
  expect(checkLaws(events)).toEqual([])
  return results.sort()
}

describe('tools in a run', () => {
  it('answer the model, or tell it what to do better', async () => {
    const run = start(
      [
        {
          toolCalls: [
            { name: 'sql_query', input: { sql: 'SELECT name FROM items WHERE id = ?', parameters: [1] } },
            { name: 'calculator', input: { expression: '0.1 + 0.2' } },
            { name: 'http_fetch', input: { url: 'http://169.254.169.254/' } },
            { name: 'order', input: { sku: 7 } },
          ],
        },
        asks('order', { sku: 'tent' }),
        { text: 'Done.' },
      ],
      [sqlQuery({ path: shop.path }), calculator(), httpFetch(), order],
    )
    expect(await resultsOf(run)).toEqual([
      'calculator success: 0.3',
      'http_fetch failed: 169.254.169.254:80 cannot be reached: its address is linkLocal, and only public addresses may be reached. Nothing was requested.',
      'order invalid_input: The input does not fit the schema of order. Nothing was run. Correct it and call the tool again:\n- sku: expected string, received number',
      'order success: {"ordered":1}',
      'sql_query success: {"columns":["name"],"rows":[["tent"]]}',
    ])
    expect(await run.result).toMatchObject({ status: 'done', reason: 'answered', text: 'Done.' })
    expect(calls.splice(0)).toMatchObject([{ input: { sku: 'tent', quantity: 1 }, attempt: 1 }])
  })

  it('wait for a person where their policy says so, and run with what the person allowed', async () => {
    const run = start([asks('order', { sku: 'tent', quantity: 20 }), { text: 'Done.' }], [order])
    const { status, pendingApprovals } = await run.result
    const [waiting] = pendingApprovals
    expect([status, waiting?.reason, calls]).toEqual(['suspended', 'a large order', []])
    await run.approve(waiting?.toolCallId ?? '', { by: 'maria', input: { sku: 'tent', quantity: 12 } })
    expect(await resultsOf(run)).toEqual(['order success: {"ordered":12}'])
    expect(calls.splice(0)).toMatchObject([{ input: { quantity: 12 } }])
  })

  it('do not run with what a person edited out of shape', async () => {
    const run = start([asks('order', { sku: 'tent', quantity: 20 }), { text: 'Done.' }], [order])
    const [waiting] = (await run.result).pendingApprovals
    const edited = { by: 'maria', input: { sku: 'tent', quantity: 0 } }
    // The person who changed it gets the error, not the model, which has asked for something else.
    expect(await run.approve(waiting?.toolCallId ?? '', edited)).toMatchObject({
      ...{ accepted: false, code: 'invalid_input' },
      message: expect.stringContaining('- quantity: Too small') as string,
    })
    expect((await run.result).pendingApprovals).toHaveLength(1)
    expect(calls).toEqual([])
  })
})
