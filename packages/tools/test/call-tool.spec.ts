import { type Tool, ConfigurationError } from '@tallystick/core'
import { callTool, manualClock, testTool, waitUntilSettled } from '@tallystick/testkit'
import { defineTool, image, settledLater, text, type ToolContext, whenInput } from '@tallystick/tools'
import { calculator } from '@tallystick/tools/calculator'
import { Observable, of } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { signalsOf } from './one-call.ts'

const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  input: z.object({ order: z.string(), euros: z.number().positive().default(1) }),
  effect: 'write',
  approval: whenInput(({ euros }) => euros > 50, 'more than 50 euros'),
  execute: ({ order, euros }, { idempotencyKey, progress, attempt }) => {
    progress({ paying: euros })
    if (order === 'none') throw new Error('no such order')
    if (order === 'later') return settledLater({ externalId: 'R-1' })
    return { order, euros, idempotencyKey, attempt }
  },
})

/** Ends when it is asked to. */
const stopping = (_input: object, { signal }: ToolContext): Promise<string> =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))

describe('a tool in a unit test, alone', () => {
  it('answers what the model would read, with the defaults of its schema', async () => {
    const run = { idempotencyKey: 'key-1', attempt: 2 }
    expect(await callTool(refund, { order: 'A-7' }, run)).toEqual({
      outcome: 'success',
      text: '{"order":"A-7","euros":1,"idempotencyKey":"key-1","attempt":2}',
      content: [{ type: 'text', text: '{"order":"A-7","euros":1,"idempotencyKey":"key-1","attempt":2}' }],
      progress: [{ paying: 1 }],
      asksApproval: false,
    })
    expect(await callTool(calculator(), { expression: '0.1 + 0.2' })).toMatchObject({ text: '0.3' })
  })

  it('is refused an input that does not fit, and nothing runs', async () => {
    const called = await callTool(refund, { order: 7 })
    expect(called).toMatchObject({ outcome: 'invalid_input', progress: [] })
    expect(called.text).toContain('order: expected string, received number')
  })

  it('says when a person would be asked, why, and what comes of it', async () => {
    expect(await callTool(refund, { order: 'A-7', euros: 51 })).toMatchObject({
      ...{ asksApproval: true, approvalReason: 'more than 50 euros', outcome: 'success' },
    })
  })

  it('says how it failed, was cancelled, or is settled later', async () => {
    expect(await callTool(refund, { order: 'none' })).toMatchObject({
      ...{ outcome: 'failed', text: 'Error: no such order', progress: [{ paying: 1 }] },
    })
    expect(await callTool(refund, { order: 'later' })).toMatchObject({
      outcome: 'deferred',
      externalId: 'R-1',
    })
    expect(await callTool(refund, { order: 'A-7' }, { cancelled$: of('enough') })).toMatchObject({
      outcome: 'cancelled',
    })
  })

  it.each([
    ['that reads and ends by itself never', 'read', () => new Promise(() => {}), /took too long/],
    ['that writes and ends by itself never', 'write', () => new Promise(() => {}), /took too long/],
    ['that hears the signal', 'write', stopping, /may have done part of its work/],
  ] as const)(
    'given a tool %s, when its time is over, then it ends as timed out',
    async (_, effect, execute, text) => {
      const clock = manualClock()
      const slow = defineTool({
        ...{ name: 'slow', description: 'Is slow.', input: z.object({}), effect, timeoutMs: 3_600_000 },
        execute,
      })
      const called = await waitUntilSettled(clock, callTool(slow, {}, { clock }))
      expect([called.outcome, called.text]).toEqual(['timed_out', expect.stringMatching(text)])
    },
  )

  it('given a tool that goes quiet, when it has reported, then its time without a report begins anew', async () => {
    const clock = manualClock()
    const wait = (ms: number) => new Promise<void>((resolve) => clock.schedule(ms, resolve))
    const poll = defineTool({
      ...{ name: 'poll', description: 'Polls.', input: z.object({}), effect: 'read', quietMs: 3_600_000 },
      execute: async (_input, { progress }) => {
        for (let round = 1; round <= 3; round++) progress(await wait(3_000_000).then(() => round))
        await wait(4_000_000)
      },
    })
    const called = await waitUntilSettled(clock, callTool(poll, {}, { clock }))
    expect(called).toMatchObject({ outcome: 'timed_out', progress: [1, 2, 3] })
  })

  it('given a tool in time, when it has ended, then no timer of its call is left', async () => {
    const clock = manualClock()
    const quick = defineTool({
      ...{
        name: 'quick',
        description: 'Is quick.',
        input: z.object({}),
        effect: 'read',
        timeoutMs: 3_600_000,
      },
      execute: () => 'done',
    })
    expect(await callTool(quick, {}, { clock })).toMatchObject({ outcome: 'success', text: 'done' })
    expect(clock.pending).toBe(0)
  })

  it('gives its images and files as parts', async () => {
    const chart = image({ mediaType: 'image/png', data: 'aGk=' })
    const draw = defineTool({
      ...{ name: 'draw', description: 'Draws.', input: z.object({}), effect: 'read' },
      execute: () => [text('The chart:'), chart],
    })
    const { text: said, content } = await callTool(draw, {})
    expect([said, content[1]]).toEqual(['The chart:', { ...chart }])
  })

  it('that was written by hand is held to its contract', async () => {
    const silent: Tool = {
      ...testTool({ name: 'silent' }),
      run: () => new Observable((end) => end.complete()),
    }
    await expect(callTool(silent, {})).rejects.toThrow(
      'The tool silent reported 0 endings of one call. A call has exactly one',
    )
  })
})

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
