// Each fault of `src` is found by what the testkit offers to users, in a message that says what is broken and shows where.
import { memoryLedger } from '@tallystick/core'
import { ollama } from '@tallystick/providers/ollama'
import { propertyTest } from '@tallystick/testkit'
import { contractOf } from '@tallystick/testkit/contract'
import { describe, expect, it } from 'vitest'
import { endlessAgent } from '../src/agent.ts'
import {
  createDroppingLedger,
  createDuplicatingLedger,
  createForgettingLedger,
  createReorderingLedger,
} from '../src/ledgers.ts'
import { createDeafModel, createEndlessModel, createRepeatingModel } from '../src/models.ts'
import { approveSmall } from '../src/policy.ts'
import { createPayingTool, deafTool, hangingTool, proxyTool, twiceTool } from '../src/tools.ts'
import { playOllama } from '../src/wire.ts'
import { listBroken } from './list-broken.ts'

/** The message has the promise, its page, and a record whose line at fault is marked. */
function expectMessage(message: string | undefined, page: string, found: RegExp, marked: RegExp): void {
  expect(message).toMatch(/^Not so: .+\.\n/)
  expect(message).toContain(`/docs/laws.md#${page}\n`)
  expect(message).toMatch(found)
  const [line = ''] = /^> .*/m.exec(message ?? '') ?? []
  expect(line).toMatch(marked)
}

describe('a tool', () => {
  const inputs = [{ order: 'A-7' }]

  it.each([
    ['that hangs', hangingTool, 'a call of a tool ends', /lookup hangs/, /start of lookup/],
    ['that reports twice', twiceTool, 'exactly one ending', /reports a second ending/, /Connection closed/],
    [
      'that throws a proxy',
      proxyTool,
      'in words that can be read',
      /throws when it is read/,
      /ending failed/,
    ],
    ['that ignores its signal', deafTool, 'asked to stop', /has not ended within 30 ms/, /asked to stop/],
  ] as const)('%s breaks one promise', async (_fault, tool, promise, found, marked) => {
    const broken = await listBroken(contractOf.tool(tool, { inputs, patienceMs: 30 }))
    expect(Object.keys(broken)).toEqual([expect.stringContaining(promise)])
    expectMessage(Object.values(broken)[0], 'a-tool', found, marked)
  })

  it('that writes twice on a rerun is found at the crash, by its effects', async () => {
    const payments: string[] = []
    const tool = createPayingTool(payments)
    const [first, second, ...others] = Object.values(
      await listBroken(contractOf.tool(tool, { inputs, effects: () => payments.length })),
    )
    expectMessage(
      first,
      'a-tool',
      /refund took effect 2 times in 1 call and 2 attempts/,
      /tool_started refund/,
    )
    expect(first).toMatch(/process 1 dies at its append \d+, which is lost/)
    expectMessage(
      second,
      'a-tool',
      /in two attempts of one call, which had the same idempotencyKey/,
      /ending/,
    )
    expect(others).toEqual([])
  })
})

describe('a ledger', () => {
  const inMemory = { lacks: ['durable', 'shared'] } as const

  it.each([
    [
      'drops',
      createDroppingLedger,
      'keeps its order',
      /assistant_text_delta text "delta 2"/,
      /holds nothing here/,
    ],
    ['duplicates', createDuplicatingLedger, 'what was appended lazily', /is 3/, /nobody appended this/],
    ['reorders', createReorderingLedger, 'keeps its order', /run_started/, /the ledger holds: 1001/],
    [
      'acknowledges only',
      createForgettingLedger,
      'the first append makes',
      /run_started/,
      /holds nothing here/,
    ],
  ] as const)('that %s is found, at the event', async (_fault, open, promise, found, below) => {
    const one = contractOf.ledger(() => ({ open }), inMemory).find((each) => each.promise.includes(promise))
    const { message } = await one!.run().then(
      () => new Error('nothing was found'),
      (error: Error) => error,
    )
    expectMessage(message, 'a-ledger', found, / \d+ \w+/)
    expect(message).toMatch(below)
  })

  it('that is sound breaks no promise', async () => {
    expect(await listBroken(contractOf.ledger(() => ({ open: () => memoryLedger() }), inMemory))).toEqual({})
  })
})

describe('an adapter', () => {
  it.each([
    [
      'asks twice',
      createRepeatingModel,
      'requests each call once',
      /The calls: expected/,
      /model_tool_request/,
    ],
    [
      'never finishes',
      createEndlessModel,
      'exactly one end',
      /the last signal is model_finished/,
      /completes/,
    ],
    [
      'goes on after a cancel',
      createDeafModel,
      'given up at any signal',
      /not come to an end/,
      /is given up/,
    ],
  ] as const)('that %s is found, at the report', async (_fault, create, promise, found, marked) => {
    const cases = contractOf.model(playOllama(create), { patienceMs: 300 })
    const one = cases.find((each) => each.promise.includes(promise))
    const { message } = await one!.run().then(
      () => new Error('nothing was found'),
      (error: Error) => error,
    )
    expectMessage(message, 'a-model', found, marked)
  })

  it('that is sound breaks no promise', async () => {
    const cases = contractOf.model(playOllama((baseURL) => ollama('qwen-test', { baseURL })))
    expect(await listBroken(cases)).toEqual({})
  })
})

it('a policy that answers with undefined breaks one promise', async () => {
  const calls = [{ name: 'refund', input: { euros: 80 } }]
  const broken = await listBroken(contractOf.policy(approveSmall, { calls }))
  expect(Object.keys(broken)).toEqual([expect.stringContaining("'run', { run: 'why' }, 'ask'")])
  expectMessage(Object.values(broken)[0], 'a-policy', /answered undefined/, /refund \{"euros":80\}/)
})

it('an agent whose loop never stops is found', async () => {
  const { message } = await propertyTest(endlessAgent, { seed: 1 }).then(
    () => new Error('nothing was found'),
    (error: Error) => error,
  )
  expectMessage(message, 'an-agent', /has not stopped after 100 model calls/, /model_call_started/)
  expect(message).toMatch(/again: +seed: 1, path: '[\d:]+'/)
  expect(message).toContain('and begins anew, without end')
})
