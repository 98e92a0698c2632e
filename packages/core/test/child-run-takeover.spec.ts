import { NEVER } from 'rxjs'
import { expect, it } from 'vitest'
import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Ledger,
  LedgerConflictError,
  type ModelRequest,
} from '@tallystick/core'
import {
  checkLaws,
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedReply,
} from '@tallystick/testkit'
import { play, type Program } from './program.ts'

const plain: Program = {
  ...{ steps: [], limits: {}, compaction: undefined, guardrails: [], structured: false },
  ...{ crashes: [], cancelAtSeq: undefined, inputs: [], decisions: [], randomness: 0 },
}

function asking(calls: readonly [tool: string, behaviour: string][]): Program['steps'][number] {
  return {
    ...{ text: '', reasoning: '', stopReason: undefined, failures: [] },
    calls: calls.map(
      ([tool, behaviour]) => ({ tool, behaviour }) as Program['steps'][number]['calls'][number],
    ),
  }
}

it.each(Array.from({ length: 30 }, (_, append) => append + 1))(
  'a child that waited, was answered and died at append %i is taken over with its parent',
  async (append) => {
    const { events, others, result } = await play({
      ...plain,
      steps: [asking([['helper', 'hang']])],
      crashes: [{ append, stored: true }],
    })
    expect(result.status).toBe('done')
    expect(others.map((child) => child.at(-1)?.type)).toEqual(['run_finished'])
    expect([events, ...others].flatMap(checkLaws)).toEqual([])
  },
)

it.each(Array.from({ length: 12 }, (_, at) => at + 8))(
  'a cancel at event %i, just before a crash, leaves no child under way',
  async (cancelAtSeq) => {
    for (let append = 3; append < 20; append++) {
      const { events, others, result } = await play({
        ...plain,
        steps: [asking([['helper', 'succeed']])],
        crashes: [{ append, stored: append % 2 === 0 }],
        cancelAtSeq,
      })
      expect(result.status).toBe('done')
      for (const child of others) expect(child.at(-1)?.type).toBe('run_finished')
      expect([events, ...others].flatMap(checkLaws)).toEqual([])
    }
  },
)

/** A boss whose clerk asks before it pays; `paying` is what a payment does. */
function office(paying: () => Promise<string>, view: (ledger: Ledger) => Ledger = (ledger) => ledger) {
  const ledger = memoryLedger()
  const clock = manualClock()
  const asking = (call: ScriptedReply, answer: string) =>
    scriptedModel(
      Array.from({ length: 9 }, () => ({ messages }: ModelRequest) => {
        return messages.length === 1 ? call : { text: answer }
      }),
    )
  const open = () => {
    const pay = testTool({
      ...{ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) },
      run: paying,
    })
    const clerk = defineAgent({
      ...{ name: 'clerk', description: 'Pays.', instructions: '', tools: [pay] },
      model: asking({ toolCalls: [{ name: 'pay', input: {} }] }, 'Paid.'),
    })
    const boss = defineAgent({
      ...{ name: 'boss', instructions: '', tools: [agentTool(clerk)] },
      model: asking({ toolCalls: [{ name: 'clerk', input: { task: 'Pay.' } }] }, 'All paid.'),
    })
    const host = { clock, random: Math.random, report: () => {} }
    return { boss, runtime: createRuntime({ ledger: view(ledger), agents: [boss], host }) }
  }
  return { ledger, clock, open, settled: <T>(promise: Promise<T>) => waitUntilSettled(clock, promise) }
}

/** A run whose clerk waits for a decision, which has come into the inbox of the clerk's run. */
async function decided(paying: () => Promise<string>, view?: (ledger: Ledger) => Ledger) {
  const set = office(paying, view)
  const { boss, runtime } = set.open()
  const rest = await set.settled(runtime.run(boss, 'Go.').result)
  const { runId, toolCallId } = rest.pendingApprovals[0]!
  await set.ledger.put(runId, { key: 'k', at: 0, command: { type: 'approve', toolCallId, by: 'ada' } })
  return { ...set, rest, childId: runId }
}

it('a run is heard while a child that it took up again is at work', async () => {
  const begun = Promise.withResolvers<void>()
  const { open, rest, settled, childId, ledger } = await decided(() => {
    begun.resolve()
    return new Promise(() => {})
  })
  const run = open().runtime.resume(rest.runId)
  await settled(begun.promise)
  expect(await settled(run.cancel('enough'))).toEqual({ accepted: true })
  expect(await settled(run.result)).toMatchObject({ status: 'done', reason: 'cancelled' })
  const types: string[] = []
  for await (const { type } of ledger.read(childId)) types.push(type)
  expect(types.at(-1)).toBe('run_finished')
})

it('a run that another process took over stops at once, though a child that it took up again is at work', async () => {
  const begun = Promise.withResolvers<void>()
  const pay = (): Promise<string> => {
    begun.resolve()
    return new Promise(() => {})
  }
  // Without hints, only the renewal of its lease tells it.
  const { open, rest, settled, ledger, clock } = await decided(pay, (own) => ({
    ...own,
    changes: () => NEVER,
  }))
  const run = open().runtime.resume(rest.runId)
  await settled(begun.promise)
  const { holder = '' } = (await ledger.lease(rest.runId)) ?? {}
  await ledger.acquire(rest.runId, { holder: 'another process', forMs: 60_000, from: holder })
  const stopped = run.result.catch((error: unknown) => error)
  clock.advance(12_000)
  expect(await settled(stopped)).toBeInstanceOf(LedgerConflictError)
})

it('a run that was interrupted by a command is failed once by a child that it took up again', async () => {
  const begun = Promise.withResolvers<void>()
  const paid = Promise.withResolvers<string>()
  const paying = (): Promise<string> => {
    begun.resolve()
    return paid.promise
  }
  const full = (ledger: Ledger): Ledger => ({
    ...ledger,
    append: (...given) =>
      given[2].some(({ type }) => type === 'tool_result')
        ? Promise.reject(new Error('disk full'))
        : ledger.append(...given),
  })
  const { open, rest, settled } = await decided(paying, full)
  const run = open().runtime.resume(rest.runId)
  await settled(begun.promise)
  // Each command ends a wait for the child, and another one begins: no failure of it is left unheard.
  for (const text of ['Hurry.', 'Hurry more.'])
    expect(await settled(run.steer(text))).toEqual({ accepted: true })
  paid.resolve('paid')
  await expect(settled(run.result)).rejects.toThrow('disk full')
})

it('a command to a run leaves a child alone that another process drives', async () => {
  const begun = Promise.withResolvers<void>()
  const paid = Promise.withResolvers<string>()
  let payments = 0
  const { open, rest, settled, childId, ledger } = await decided(() => {
    payments++
    begun.resolve()
    return paid.promise
  })
  const driver = open().runtime.resume(rest.runId)
  await settled(begun.promise)
  const before = await ledger.head(childId)
  const other = open().runtime
  const calls: string[] = []
  for await (const event of ledger.read(rest.runId)) {
    if (event.type === 'tool_deferred') calls.push(event.toolCallId)
  }
  expect((await settled(other.settle(rest.runId, calls[0]!, 'I did it.'))).accepted).toBe(false)
  await settled(other.idle())
  expect(await ledger.head(childId)).toEqual(before)
  paid.resolve('paid')
  await settled(driver.result.catch(() => {}))
  expect(payments).toBe(1)
})
