import { ConfigurationError } from '@tallystick/core'
import { defineTool, settledLater } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { signalsOf } from './one-call.ts'

const exporting = (answer: () => unknown) =>
  defineTool({
    name: 'export_report',
    description: 'Exports a report. It takes hours.',
    input: z.object({ month: z.string() }),
    effect: 'write',
    execute: answer,
  })

describe('settledLater', () => {
  it('defers the call under its external id instead of ending it', async () => {
    const tool = exporting(() => settledLater({ externalId: 'job-7', deadlineMs: 3_600_000 }))
    expect(await signalsOf(tool, { month: '2026-10' })).toEqual([
      { type: 'tool_deferred', externalId: 'job-7', deadlineMs: 3_600_000 },
    ])
  })

  it('works from an asynchronous tool, and without a deadline', async () => {
    const tool = exporting(async () => settledLater({ externalId: 'job-8' }))
    expect(await signalsOf(tool, { month: '2026-10' })).toEqual([
      { type: 'tool_deferred', externalId: 'job-8' },
    ])
  })

  it('leaves a result that happens to look like one a result', async () => {
    const [signal] = await signalsOf(
      exporting(() => ({ externalId: 'job-9' })),
      { month: '2026-10' },
    )
    expect(signal).toMatchObject({ type: 'tool_ended', outcome: 'success' })
  })

  it('needs an external id and a deadline that can come', () => {
    expect(() => settledLater({ externalId: '' })).toThrow(
      'externalId is an empty text; expected what names the call',
    )
    for (const deadlineMs of [0, Infinity, Number.NaN])
      expect(() => settledLater({ externalId: 'job-1', deadlineMs })).toThrow('above 0')
    expect(settledLater({ externalId: 'job-1', deadlineMs: 0.5 }).deadlineMs).toBe(0.5)
  })

  it.each<[string, unknown, string]>([
    ['no options', undefined, 'settledLater: what it was given is missing'],
    ['a deadline by another case', { externalId: 'job-1', deadlineMS: 5 }, 'Did you mean deadlineMs?'],
    ['an external id by another name', { id: 'job-1' }, 'Did you mean externalId?'],
    [
      'an external id by the name of a job',
      { jobId: 'job-1' },
      'jobId is not an option. Did you mean externalId?',
    ],
    [
      'an external id by that of a receipt',
      { receipt: 'job-1' },
      'receipt is not an option. Did you mean externalId?',
    ],
    ['a deadline by that of a timeout', { externalId: 'job-1', timeoutMs: 5 }, 'Did you mean deadlineMs?'],
    ['a number for an external id', { externalId: 7 }, 'externalId is 7; expected'],
  ])('refuses %s', (_what, options, message) => {
    expect(() => settledLater(options as never)).toThrow(ConfigurationError)
    expect(() => settledLater(options as never)).toThrow(message)
  })
})
