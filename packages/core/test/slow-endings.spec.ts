import { NEVER, Observable, type Subscriber } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { agentTool, defineAgent, memoryLedger, type Ledger } from '@tallystick/core'
import { type ToolSignal } from '@tallystick/core/vocabulary'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage } from './stage.ts'

/** A ledger whose appends are never answered from the nth on. */
function silentLedger(from: number): Ledger {
  const ledger = memoryLedger()
  let appends = 0
  return {
    ...ledger,
    append: (...given) => (++appends >= from ? new Promise<never>(() => {}) : ledger.append(...given)),
  }
}

describe('a drain', () => {
  it.each([1, 2, 3])('ends although append %i is never answered', async (from) => {
    const set = stage({ ledger: silentLedger(from), steps: [{ text: 'Done.' }] })
    const run = set.start()
    const failed = run.result.catch((error: unknown) => error)
    expect(await set.waitUntilSettled(set.runtime.drain(1_000))).toEqual([])
    expect(await set.waitUntilSettled(failed)).toMatchObject({ code: 'ledger_unavailable' })
    await set.waitUntilSettled(set.runtime.idle())
  })
})

describe('writes that take too long', () => {
  /** A write that ignores every cancel, and ends when the test says so. */
  function stubborn(name: string, atWork: Set<string>, most: { at: number }) {
    const tool = testTool({ name, effect: 'write', timeoutMs: 100 })
    const ends = new Map<string, () => void>()
    return {
      ends,
      tool: {
        ...tool,
        run: ({ toolCallId }: { readonly toolCallId: string }) =>
          new Observable<ToolSignal>((subscriber: Subscriber<ToolSignal>) => {
            atWork.add(toolCallId)
            most.at = Math.max(most.at, atWork.size)
            ends.set(toolCallId, () => {
              atWork.delete(toolCallId)
              subscriber.next({
                type: 'tool_ended',
                outcome: 'success',
                content: [{ type: 'text', text: 'Late.' }],
              })
              subscriber.complete()
            })
          }),
      },
    }
  }

  it('do not overlap: one that timed out is at work until it has ended', async () => {
    const atWork = new Set<string>()
    const most = { at: 0 }
    const { tool, ends } = stubborn('pay', atWork, most)
    const set = stage({
      steps: [{ toolCalls: [1, 2, 3].map((nth) => ({ name: 'pay', input: { nth } })) }, { text: 'Done.' }],
      tools: [tool],
      limits: { graceMs: 1_000 },
    })
    const run = set.start()
    run.events$.subscribe((event) => {
      // Each ends half a second after its time was over.
      if (event.type === 'tool_started') set.clock.schedule(600, () => ends.get(event.toolCallId)?.())
    })
    const { runId } = await set.waitUntilSettled(run.result)
    expect(most.at).toBe(1)
    const results = ofType(checkedRun(await set.eventsOf(runId)), 'tool_result')
    expect(results.map(({ outcome }) => outcome)).toEqual(['success', 'success', 'success'])
  })

  it('are given up when their grace time is over', async () => {
    const { tool } = stubborn('pay', new Set(), { at: 0 })
    const set = stage({
      steps: [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Done.' }],
      tools: [{ ...tool, run: () => NEVER }],
      limits: { graceMs: 1_000 },
    })
    const { runId } = await set.play()
    const [started] = ofType(await set.eventsOf(runId), 'tool_started')
    const [result] = ofType(await set.eventsOf(runId), 'tool_result')
    expect(result).toMatchObject({ outcome: 'timed_out' })
    expect(result!.at - started!.at).toBe(1_100)
  })
})

describe('a parent whose grace time is 0', () => {
  it('tells its child runs that it is cancelled, and the runtime becomes idle', async () => {
    const worker = defineAgent({
      ...{ name: 'worker', instructions: 'Work.' },
      model: scriptedModel([{ text: 'Working', hang: true }]),
    })
    const set = stage({
      steps: [{ toolCalls: [{ name: 'delegate', input: { task: 'Do.' } }] }, { text: 'Done.' }],
      tools: [agentTool(worker, { name: 'delegate', description: 'Delegates.' })],
      limits: { graceMs: 0 },
    })
    const run = set.start()
    run.events$.subscribe(({ type }) => {
      if (type === 'tool_started') void Promise.resolve().then(() => run.cancel('Enough.'))
    })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'cancelled' })
    await set.waitUntilSettled(set.runtime.idle())
    const [started] = ofType(await set.eventsOf(run), 'tool_started')
    const child = await Array.fromAsync(set.ledger.runs())
    expect(child).toHaveLength(2)
    expect(started).toBeDefined()
    for (const { runId } of child) {
      expect(ofType(await set.eventsOf(runId), 'run_finished')).toMatchObject([{ reason: 'cancelled' }])
    }
  })
})

describe('the time that an approval may take', () => {
  it.each([0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 1e308, '5'])('is not %s', (maxApprovalMs) => {
    expect(() => stage({ limits: { maxApprovalMs: maxApprovalMs as number } })).toThrow(/maxApprovalMs/)
  })
})
