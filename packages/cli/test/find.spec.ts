import { readFile } from 'node:fs/promises'
import { createRuntime, defineAgent, type RunResult } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openShop, type Shop } from './kit/shop.ts'
import { measureText } from '../src/terminal/text-width.ts'
import { json, tallystickHere, tallystickRead } from './kit/tallystick.ts'

/** Orders an item that there is, then one that there is not, whose search throws. */
function buyer() {
  const model = scriptedModel([
    {
      text: '注文します。',
      toolCalls: [{ name: 'search', input: { item: { sku: 'tea', count: 2 }, tags: ['hot'] } }],
    },
    { toolCalls: [{ name: 'search', input: { item: { sku: 'gold', count: 1 }, tags: [] } }] },
    { text: 'There is no gold.', usage: { inputTokens: 30, outputTokens: 7 } },
  ])
  const search = testTool({
    name: 'search',
    run: ({ input }) => {
      if (JSON.stringify(input).includes('gold')) throw new Error('the warehouse is closed')
      return '2 boxes on shelf 7'
    },
  })
  return defineAgent({ name: '買い手', instructions: 'Buy.', model, tools: [search] })
}

describe('what is on record of many runs', { timeout: 30_000 }, () => {
  let shop: Shop
  let bought: RunResult
  let waiting: RunResult
  beforeAll(async () => {
    shop = await openShop()
    const ledger = sqliteLedger(shop.ledgerPath)
    const agent = buyer()
    bought = await createRuntime({ ledger, agents: [agent] }).run(
      agent,
      'お茶と金を二つずつ注文してください。',
    ).result
    await ledger.close()
    waiting = await shop.start()
  })
  afterAll(() => shop[Symbol.asyncDispose]())

  const found = async (...words: readonly string[]) => {
    const { code, stdout } = await tallystickHere('find', shop.ledgerPath, '--json', ...words)
    expect(code).toBe(0)
    return stdout === '' ? [] : (stdout.trimEnd().split('\n').map(json) as readonly Record<string, unknown>[])
  }

  it('is found by tool and outcome', async () => {
    expect(await found('--tool', 'search')).toMatchObject([
      { runId: bought.runId, tool: 'search', outcome: 'success', input: { item: { sku: 'tea', count: 2 } } },
      { runId: bought.runId, tool: 'search', outcome: 'failed', input: { item: { sku: 'gold', count: 1 } } },
    ])
    expect(await found('--tool', 'search', '--outcome', 'failed')).toMatchObject([
      { input: { item: { sku: 'gold' } } },
    ])
    expect(await found('--outcome', 'timed_out')).toEqual([])
    // A call that waits has no outcome, and is found all the same.
    const [open] = await found('--tool', 'pay')
    expect(open).toMatchObject({ runId: waiting.runId, tool: 'pay', input: { usd: 5 } })
    expect(open).not.toHaveProperty('outcome')
  })

  it('is found by the value at a path of the input', async () => {
    expect(await found('--input', 'item.sku=tea')).toHaveLength(1)
    expect(await found('--input', 'item.count=1')).toMatchObject([{ outcome: 'failed' }])
    expect(await found('--input', 'item.sku=tea', '--input', 'item.count=1')).toEqual([])
    expect(await found('--input', 'tags.0=hot')).toHaveLength(1)
    expect(await found('--input', 'constructor.name=Object')).toEqual([])
    expect((await tallystickHere('find', shop.ledgerPath, '--input', 'tea')).code).toBe(2)
  })

  it('is found by text, in all messages', async () => {
    expect(await found('--text', 'WAREHOUSE')).toMatchObject([{ tool: 'search', outcome: 'failed' }])
    expect((await found('--text', '注文')).map(({ type }) => type)).toEqual([
      'input_received',
      'assistant_message_finished',
    ])
    expect(await found('--text', 'no gold')).toMatchObject([{ type: 'assistant_message_finished' }])
    expect(await found('--text', 'shelf 7', '--run', waiting.runId)).toEqual([])
  })

  it('is found by time', async () => {
    expect(await found('--tool', 'search', '--since', '1d')).toHaveLength(2)
    expect(await found('--tool', 'search', '--until', '2020-01-01')).toEqual([])
    expect(await found('--tool', 'search', '--limit', '1')).toHaveLength(1)
  })

  it('is printed a line each, which a terminal does not break, with the command that shows one whole', async () => {
    const plain = await tallystickHere('find', shop.ledgerPath, '--text', 'boxes')
    expect(plain.stdout).toMatch(
      new RegExp(`^${bought.runId} +\\d+ {2}\\S+Z {2}search success \\{.*\\} 2 boxes on shelf 7\\n$`),
    )
    expect(plain.stderr).toBe('')
    const { stdout, stderr } = await tallystickRead(80, 'find', shop.ledgerPath, '--text', '注文')
    const lines = stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(2)
    expect(lines.every((line) => measureText(line) <= 80)).toBe(true)
    expect(stderr).toMatch(/tallystick show \S+ \S+ --event \d+\n$/)
    expect((await tallystickHere('find', shop.ledgerPath)).code).toBe(2)
  })

  it('is nothing where nothing fits, which people read on stderr and programs see', async () => {
    const words = ['find', shop.ledgerPath, '--text', 'no such words']
    const said = 'Nothing of the kind is on record.\n'
    expect(await tallystickHere(...words)).toMatchObject({ code: 0, stdout: '', stderr: said })
    expect(await tallystickRead(80, ...words)).toMatchObject({ code: 0, stdout: '', stderr: said })
    expect(await tallystickHere(...words, '--json')).toMatchObject({ code: 0, stdout: '', stderr: '' })
  })

  it('is listed one row a run at 80 columns: with cost, time, the worst thing that happened and the first words', async () => {
    const { stdout } = await tallystickRead(80, 'list', shop.ledgerPath)
    const [heads, ...rows] = stdout.trimEnd().split('\n')
    expect(heads).toMatch(/^RUN +STARTED +TOOK +COST +STATUS +INPUT$/)
    expect(rows).toHaveLength(2)
    for (const row of rows) expect(measureText(row)).toBeLessThanOrEqual(80)
    expect(rows[0]).toMatch(new RegExp(`^${waiting.runId.slice(-8)} .* waits: pay +Buy`))
    expect(rows[1]).toMatch(new RegExp(`^${bought.runId.slice(-8)} .* answered; search fail.* お茶と金`))
    const { stdout: shown } = await tallystickHere('show', shop.ledgerPath, bought.runId.slice(-8), '--json')
    expect(json(shown)).toMatchObject({ runId: bought.runId })
  })

  it('is listed by tool and outcome, and told to programs whole', async () => {
    const listed = async (...words: readonly string[]) => {
      const { stdout } = await tallystickHere('list', shop.ledgerPath, '--json', ...words)
      return stdout === ''
        ? []
        : (stdout.trimEnd().split('\n').map(json) as readonly { readonly runId: string }[])
    }
    expect(await listed('--tool', 'search', '--outcome', 'failed')).toMatchObject([
      {
        ...{ runId: bought.runId, input: 'お茶と金を二つずつ注文してください。', worst: 'search failed' },
        calls: [
          { name: 'search', outcome: 'success', count: 1 },
          { name: 'search', outcome: 'failed', count: 1 },
        ],
      },
    ])
    expect(await listed('--tool', 'pay', '--outcome', 'failed')).toEqual([])
    expect((await listed('--outcome', 'success')).map(({ runId }) => runId)).toEqual([
      waiting.runId,
      bought.runId,
    ])
    expect((await tallystickHere('list', shop.ledgerPath, '--outcome', 'bad')).code).toBe(2)
  })

  it('is compared one under the other where the terminal is narrow', async () => {
    const words = ['diff', shop.ledgerPath, bought.runId, waiting.runId]
    const { stdout } = await tallystickRead(80, ...words)
    expect(stdout).toContain(`\nLEFT           ${bought.runId}\n`)
    expect(stdout).toMatch(/^turn 1\n {2}left +\d+ .*(?:\n {8}.*)*\n {2}right +\d+ /m)
    for (const line of stdout.split('\n').slice(4)) expect(measureText(line)).toBeLessThanOrEqual(80)
    expect((await tallystickRead(200, ...words)).stdout).toMatch(/^ +LEFT +RIGHT$/m)
    expect(await readFile(shop.ledgerPath)).toBeDefined()
  })
})
