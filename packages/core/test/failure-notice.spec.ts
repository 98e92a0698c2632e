import { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { createRuntime, defineAgent, memoryLedger, type Ledger, type Model, type Run } from '@tallystick/core'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import { manualClock, scriptedModel, waitUntilSettled, testTool } from '@tallystick/testkit'

/** A runtime whose ledger cannot append from its append of this number on, and all that its host receives. */
function failing(append: number, model: Model = scriptedModel([{ text: 'Hello.' }])) {
  const ledger = memoryLedger()
  let appends = 0
  const broken: Ledger = {
    ...ledger,
    async append(...given) {
      if (++appends >= append) throw new Error('disk full')
      return await ledger.append(...given)
    },
  }
  const reported: string[] = []
  const clock = manualClock()
  const pay = testTool({ name: 'pay', check: () => ({ kind: 'ask' }) })
  const agent = defineAgent({
    name: 'agent',
    instructions: '',
    model,
    tools: [pay],
    timeouts: { idleMs: 100 },
  })
  const report = (error: unknown, what: string): void => void reported.push(`${what}: ${String(error)}`)
  const runtime = createRuntime({ ledger: broken, agents: [agent], host: { clock, report } })
  return {
    runtime,
    reported,
    clock,
    start: () => runtime.run(agent, 'Go.'),
    idle: () => waitUntilSettled(clock, runtime.idle()),
  }
}

const failed = (run: Run): string => `Run ${run.id} failed and is driven here no more: Error: disk full`

describe('a run whose ledger fails', () => {
  it.each([1, 2, 3])('without a subscriber says why, once (append %i)', async (append) => {
    const { start, idle, reported } = failing(append)
    const run = start()
    await idle()
    expect(reported).toEqual([failed(run)])
  })

  it('says so once though several are subscribed, none of whom listens for errors', async () => {
    const { start, idle, reported } = failing(3)
    const run = start()
    run.events$.subscribe()
    run.text$.subscribe(() => {})
    run.state$.subscribe()
    await idle()
    expect(reported).toEqual([failed(run)])
  })

  it('says so to callers that await its result, iterate over it or listen for errors, and to no other', async () => {
    const received: string[] = []
    const hear = (error: unknown): void => void received.push(String(error))
    const ways: ((run: Run) => Promise<unknown>)[] = [
      (run) => run.result.catch(hear),
      async (run) => {
        try {
          for await (const event of run) expect(event.runId).toBe(run.id)
        } catch (error) {
          hear(error)
        }
      },
      (run) =>
        new Promise<void>(
          (resolve) => void run.textUpdates$.subscribe({ error: (error) => resolve(hear(error)) }),
        ),
      (run) => run.steer('More.').catch(hear),
    ]
    for (const [index, way] of ways.entries()) {
      const { start, reported, clock, idle } = failing(2)
      const run = start()
      run.events$.subscribe()
      await waitUntilSettled(clock, way(run))
      await idle()
      expect([index, reported]).toEqual([index, []])
    }
    expect(received).toEqual(ways.map(() => 'Error: disk full'))
  })

  it('says so when it fails later, though a caller awaited the stop before', async () => {
    const asking = (): Model =>
      scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }])
    const late: string[][] = []
    for (let append = 0; append < 20; append++) {
      const { start, clock, reported, idle } = failing(append, asking())
      const run = start()
      const rest = await waitUntilSettled(clock, run.result).catch(() => undefined)
      const approved = rest && run.approve(rest.pendingApprovals[0]!.toolCallId, { by: 'ada' })
      const acknowledgement =
        approved &&
        (await waitUntilSettled(
          clock,
          approved.catch(() => undefined),
        ))
      await idle()
      if (acknowledgement && reported.length > 0) late.push([failed(run), ...reported])
    }
    expect(late.length).toBeGreaterThan(0)
    for (const [why, ...reported] of late) expect(reported).toEqual([why])
  })

  it('has said so already when a late caller comes, which gets the error as well', async () => {
    const { start, idle, reported, clock } = failing(2)
    const run = start()
    await idle()
    await expect(waitUntilSettled(clock, run.result)).rejects.toThrow('disk full')
    const late = new Promise((resolve) => void run.events$.subscribe({ error: resolve }))
    expect(await waitUntilSettled(clock, late)).toMatchObject({ message: 'disk full' })
    expect(reported).toEqual([failed(run)])
  })
})

describe('a model whose clean-up throws', () => {
  const adapter = (begin: (post: (signal: ModelSignal) => void) => void): Model => ({
    ...{ provider: 'loose', api: 'wire', modelId: 'loose-1' },
    stream: () =>
      new Observable<ModelSignal>((subscriber) => {
        begin((signal) => subscriber.next(signal))
        return () => {
          throw new Error('the socket is gone')
        }
      }),
  })
  const letGo =
    'The adapter of the model loose-1 threw when its call was abandoned: Error: the socket is gone'

  it('when it is given up for its silence ends nothing but its call', async () => {
    const { start, clock, reported } = failing(
      Infinity,
      adapter(() => {}),
    )
    expect(await waitUntilSettled(clock, start().result)).toMatchObject({ reason: 'model_failed' })
    expect(new Set(reported)).toEqual(new Set([letGo]))
  })

  it('when it has answered takes nothing from the answer', async () => {
    const answering = adapter((post) =>
      post({ type: 'model_finished', stopReason: 'end', parts: [{ type: 'text', text: 'Hi.', part: 0 }] }),
    )
    const { start, clock, reported } = failing(Infinity, answering)
    expect(await waitUntilSettled(clock, start().result)).toMatchObject({ reason: 'answered', text: 'Hi.' })
    expect(reported).toEqual([letGo])
  })
})
