import { createRuntime, defineAgent, memoryLedger, type Model, ProviderError } from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { failures } from '../src/anthropic/failure.ts'
import { createModel } from '../src/shared/model.ts'
import type { Warning } from '../src/shared/options.ts'

const images: Warning = { what: 'images', message: 'Images were left out.' }
const choice: Warning = { what: 'choice', message: 'No choice was told.' }

/** A model whose calls warn in turn, and what its option gets of that. */
function warningModel(inner: ReturnType<typeof scriptedModel>, warnings: readonly (readonly Warning[])[]) {
  const reported: string[] = []
  const model = createModel<object, object, Warning>({
    provider: inner.provider,
    api: inner.api,
    modelId: inner.modelId,
    options: { onWarning: (warning: Warning) => reported.push(warning.message) },
    recorded: { pinned: [], written: [] },
    failures,
    client: {},
    start: ({ request, context, subscriber, warn }) => {
      warnings[inner.requests.length]?.forEach(warn)
      const subscription = inner.stream(request, context).subscribe(subscriber)
      return () => subscription.unsubscribe()
    },
  })
  return { model, reported }
}

async function eventsOf(model: Model) {
  const ledger = memoryLedger()
  const tools = [testTool({ name: 'look' })]
  const agent = defineAgent({ name: 'a', instructions: '', model, tools, retry: { maxAttempts: 1 } })
  const { runId } = await createRuntime({ ledger, host: { clock: manualClock() } }).run(agent, 'Go.').result
  return Array.fromAsync(ledger.read(runId))
}

describe('what a wire could not carry of a request', () => {
  it('given replies, when they begin, then it is recorded with each, and reported once', async () => {
    const inner = scriptedModel([
      { toolCalls: [{ name: 'look', input: {} }] },
      { toolCalls: [{ name: 'look', input: {} }] },
      { text: 'Done.' },
    ])
    const { model, reported } = warningModel(inner, [[images], [images, choice], []])
    const started = (await eventsOf(model)).filter(({ type }) => type === 'assistant_started')
    expect(started.map((event) => ('warnings' in event ? event.warnings : undefined))).toEqual([
      ['Images were left out.'],
      ['Images were left out.', 'No choice was told.'],
      undefined,
    ])
    expect(reported).toEqual(['Images were left out.', 'No choice was told.'])
  })

  it('given a call that fails before it replies, when it is recorded, then its failure says it', async () => {
    const model = createModel<object, object, Warning>({
      ...{ provider: 'p', api: 'a', modelId: 'm', options: {}, client: {}, failures },
      recorded: { pinned: [], written: [] },
      start: ({ subscriber, warn }) => {
        warn(images)
        subscriber.error(new ProviderError({ class: 'invalid_request', message: 'No.', retryable: false }))
        return () => {}
      },
    })
    const failed = (await eventsOf(model)).find(({ type }) => type === 'model_stream_failed')
    expect(failed).toMatchObject({
      failure: {
        message: 'No. The request had gone out changed: Images were left out.',
      },
    })
  })
})
