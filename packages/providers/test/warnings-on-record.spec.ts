import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { collectWarnings, warnOnce } from '../src/shared/options.ts'
import { describe, expect, it } from 'vitest'

describe('what a wire could not be told', () => {
  it('is recorded with each call that it concerns, and reported once', async () => {
    const reported: string[] = []
    const report = warnOnce((warning) => reported.push(warning.message))
    const inner = scriptedModel([
      { toolCalls: [{ name: 'look', input: {} }] },
      { toolCalls: [{ name: 'look', input: {} }] },
      { text: 'Done.' },
    ])
    const warnings = [
      [{ what: 'images', message: 'Images were left out.' }],
      [
        { what: 'images', message: 'Images were left out.' },
        { what: 'choice', message: 'No choice was told.' },
      ],
      [],
    ]
    const model = {
      ...inner,
      stream: (...call: Parameters<typeof inner.stream>) =>
        collectWarnings(report, (warn) => {
          warnings[inner.requests.length]?.forEach(warn)
          return inner.stream(...call)
        }),
    }
    const ledger = memoryLedger()
    const agent = defineAgent({ name: 'a', instructions: '', model, tools: [testTool({ name: 'look' })] })
    const { runId } = await createRuntime({ ledger, host: { clock: manualClock() } }).run(agent, 'Go.').result
    const started = (await Array.fromAsync(ledger.read(runId))).filter(
      ({ type }) => type === 'assistant_started',
    )
    expect(started.map((event) => ('warnings' in event ? event.warnings : undefined))).toEqual([
      ['Images were left out.'],
      ['Images were left out.', 'No choice was told.'],
      undefined,
    ])
    expect(reported).toEqual(['Images were left out.', 'No choice was told.'])
  })
})
