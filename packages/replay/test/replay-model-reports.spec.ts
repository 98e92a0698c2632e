import { createRuntime, defineAgent, memoryLedger, type Model, type RuntimeEvent } from '@tallystick/core'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import { manualClock, seededRandom } from '@tallystick/testkit'
import { replayRun } from '@tallystick/replay'
import { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'

/** What a model may report beside plain text, each in a run of its own. */
const reports: Readonly<Record<string, readonly ModelSignal[]>> = {
  'text that it takes back': [
    { type: 'model_text', part: 0, text: 'The balance is 12.' },
    { type: 'model_text', part: 0, text: 'Hello', replaces: true },
  ],
  'reasoning that it takes back': [
    { type: 'model_reasoning', part: 1, text: 'Twelve?' },
    { type: 'model_reasoning', part: 1, text: 'Hm', replaces: true },
  ],
  'a conversation that is shorter than what is billed': [
    {
      ...{ type: 'model_usage', usage: { inputTokens: 60_000, outputTokens: 9, webSearches: 2 } },
      ...{ contextTokens: 612, raw: { iterations: [] } },
    },
  ],
}

describe('a recorded run comes out the same', () => {
  it.each(Object.entries(reports))('with %s', async (_, signals) => {
    const model: Model = {
      ...{ provider: 'test', api: 'test', modelId: 'm' },
      stream: () =>
        new Observable((subscriber) => {
          for (const signal of signals) subscriber.next(signal)
          const reasoned = signals.some(({ type }) => type === 'model_reasoning')
          subscriber.next({
            ...{ type: 'model_finished', stopReason: 'end' },
            parts: [
              { type: 'text', text: 'Hello', part: 0 },
              ...(reasoned ? [{ type: 'reasoning', text: 'Hm', part: 1 } as const] : []),
            ],
          })
          subscriber.complete()
        }),
    }
    const agent = defineAgent({ name: 'a', instructions: '', model })
    const ledger = memoryLedger()
    const host = { clock: manualClock(), random: seededRandom(1) }
    const { runId, text } = await createRuntime({ ledger, host }).run(agent, 'Go.').result
    expect(text).toBe('Hello')
    const events: readonly RuntimeEvent[] = await Array.fromAsync(ledger.read(runId))
    expect(await replayRun(ledger, runId, () => agent)).toEqual({ runId, events: events.length })
  })
})
