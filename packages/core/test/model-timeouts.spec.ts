import { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Model } from '@tallystick/core'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage } from './stage.ts'

/** A model that reports one delta every `everyMs`, by the clock that it is lent, and never ends. */
function slowModel(everyMs: number): Model & { readonly closed: () => number } {
  let closed = 0
  return {
    ...{ provider: 'slow', api: 'script', modelId: 'slow-1', closed: () => closed },
    stream: (_request, { clock }) =>
      new Observable<ModelSignal>((subscriber) => {
        let open = true
        const tick = (): void => {
          clock.schedule(everyMs, () => {
            if (!open) return
            subscriber.next({ type: 'model_text', part: 0, text: '.' })
            tick()
          })
        }
        tick()
        return () => {
          open = false
          closed++
        }
      }),
  }
}

describe('the timeouts of a model call', () => {
  it('give up a call that reports nothing, which counts as a failed attempt and closes the connection', async () => {
    const model = slowModel(60_000)
    const { play, eventsOf } = stage({
      ...{ model, timeouts: { idleMs: 1_000 }, retry: { maxAttempts: 2 } },
    })
    const { runId, reason } = await play()
    expect(reason).toBe('model_failed')
    expect(model.closed()).toBe(2)
    expect(ofType(checkedRun(await eventsOf(runId)), 'model_stream_failed')).toMatchObject([
      {
        failure: { class: 'timeout', retryable: true, message: expect.stringContaining('1000 ms') as string },
      },
      { failure: { class: 'timeout' } },
    ])
  })

  it('let a call continue that reports, up to the total time', async () => {
    const model = slowModel(400)
    const { play, eventsOf } = stage({
      ...{ model, timeouts: { idleMs: 1_000, totalMs: 3_000 }, retry: { maxAttempts: 1 } },
    })
    const { runId, text } = await play()
    expect(text).toBe('.......')
    const [failed] = ofType(checkedRun(await eventsOf(runId)), 'model_stream_failed')
    expect(failed?.failure.message).toContain('longer than 3000 ms')
  })

  it('leave a call alone that ends in time', async () => {
    const { play } = stage({ timeouts: { idleMs: 1_000, totalMs: 3_000 } })
    expect(await play()).toMatchObject({ reason: 'answered', text: 'Done.' })
  })
})

describe('a turn that offers a part of the tools', () => {
  it('does not run a tool that it did not offer', async () => {
    const [look, pay] = [testTool({ name: 'look' }), testTool({ name: 'pay', effect: 'write' })]
    const model = scriptedModel([
      { toolCalls: ['look', 'pay'].map((name) => ({ name, input: {} })) },
      { text: 'Done.' },
    ])
    const { play, eventsOf } = stage({ model, tools: [look, pay], prepareTurn: () => ({ tools: ['look'] }) })
    const { runId } = await play()
    expect([look.runs.length, pay.runs.length]).toEqual([1, 0])
    const results = ofType(checkedRun(await eventsOf(runId)), 'tool_result')
    expect(results.map(({ name, outcome }) => `${name} ${outcome}`).toSorted()).toEqual([
      ...['look success', 'pay unknown_tool'],
    ])
  })

  it('is refused where what it would show parts a call from its result', async () => {
    const look = testTool({ name: 'look' })
    const { play } = stage({
      ...{ steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }], tools: [look] },
      prepareTurn: ({ turn, history }) =>
        turn === 0 ? undefined : { messages: history.store.messages.slice(0, 2) },
    })
    await expect(play()).rejects.toThrow(
      /prepareTurn of the agent agent returned messages that no provider takes/,
    )
  })
})
