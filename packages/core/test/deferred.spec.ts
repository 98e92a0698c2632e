import { describe, expect, it } from 'vitest'
import { createRuntime, type RunState } from '@tallystick/core'
import { listDeferredCalls, evolve } from '@tallystick/core/machine'
import { testTool } from '@tallystick/testkit'
import { ofType, stage } from './stage.ts'

const steps = [{ toolCalls: [{ name: 'export', input: { month: 7 } }] }, { text: 'Done.' }]
const exporting = (deadlineMs?: number) =>
  testTool({
    name: 'export',
    effect: 'write',
    run: (_run, report) => {
      report.defer('job-7', deadlineMs)
      return 'not heard any more'
    },
  })

describe('a tool that settles later', () => {
  it('suspends the run, and a caller with the id settles the call from any process', async () => {
    const tool = exporting()
    const {
      start,
      waitUntilSettled: settle,
      eventsOf,
      ledger,
      agent,
      clock,
      model,
    } = stage({ steps, tools: [tool] })
    const run = start()
    const rest = await settle(run.result)
    expect(rest).toMatchObject({
      status: 'suspended',
      deferredCalls: [{ name: 'export', input: { month: 7 }, externalId: 'job-7' }],
    })
    const { toolCallId } = rest.deferredCalls[0]!
    clock.advance(30 * 24 * 3_600_000)

    const other = createRuntime({ ledger, agents: [agent], host: { clock } })
    expect(await settle(other.settle(run.id, toolCallId, 'exported to s3'))).toEqual({ accepted: true })
    expect(await settle(other.resume(run.id).result)).toMatchObject({ reason: 'answered', text: 'Done.' })
    expect(tool.runs).toHaveLength(1)
    expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toContain('exported to s3')
    const results = ofType(await eventsOf(run), 'tool_result')
    expect(results).toMatchObject([{ toolCallId, outcome: 'success' }])
  })

  it('is settled at once after another call, while the process lets go of the run', async () => {
    const calls = [1, 2, 3].map((month) => ({ name: 'export', input: { month } }))
    const tool = testTool({
      name: 'export',
      run: (_run, report) => {
        report.defer('job-7')
        return ''
      },
    })
    const { start, waitUntilSettled, runtime, clock } = stage({
      ...{ steps: [{ toolCalls: calls }, { text: 'Done.' }], tools: [tool] },
    })
    const run = start()
    const { deferredCalls: waiting } = await waitUntilSettled(run.result)
    expect(waiting).toHaveLength(3)
    const begun = clock.now()
    for (const { toolCallId } of waiting) await waitUntilSettled(runtime.settle(run.id, toolCallId, 'fine'))
    expect(await waitUntilSettled(run.result)).toMatchObject({ text: 'Done.' })
    expect(clock.now() - begun).toBe(0)
  })

  it('is settled once: what comes second is refused', async () => {
    const { start, waitUntilSettled: settle, runtime, eventsOf } = stage({ steps, tools: [exporting()] })
    const run = start()
    const { toolCallId } = (await settle(run.result)).deferredCalls[0]!
    const both = [
      runtime.settle(run.id, toolCallId, { failed: 'disk full' }),
      runtime.settle(run.id, toolCallId, 'fine'),
    ]
    const acknowledgements = await settle(Promise.all(both))
    expect(acknowledgements).toMatchObject([{ accepted: true }, { accepted: false, code: 'not_deferred' }])
    await settle(runtime.resume(run.id).result)
    const results = ofType(await eventsOf(run), 'tool_result')
    expect(results).toMatchObject([{ outcome: 'failed', content: [{ type: 'text', text: 'disk full' }] }])
  })

  it('counts as timed out when it is not settled in its time', async () => {
    const {
      start,
      waitUntilSettled: settle,
      runtime,
      clock,
      eventsOf,
    } = stage({ steps, tools: [exporting(60_000)] })
    const run = start()
    await settle(run.result)
    clock.advance(60_000)
    expect(await settle(runtime.resume(run.id).result)).toMatchObject({ reason: 'answered' })
    expect(ofType(await eventsOf(run), 'tool_result')).toMatchObject([{ outcome: 'timed_out' }])
  })

  it('is in doubt no more than it was before: a crash after the deferral starts nothing again', async () => {
    const tool = exporting()
    const { start, waitUntilSettled: settle, runtime, eventsOf } = stage({ steps, tools: [tool] })
    const run = start()
    await settle(run.result)
    expect(await settle(runtime.resume(run.id).result)).toMatchObject({ status: 'suspended' })
    expect(tool.runs).toHaveLength(1)
    const events = await eventsOf(run)
    const state = events.reduce<RunState | undefined>(evolve, undefined)!
    expect(listDeferredCalls(state)).toMatchObject([{ externalId: 'job-7' }])
  })

  it('ends as interrupted when the run is cancelled: it may still take effect', async () => {
    const { start, waitUntilSettled: settle, eventsOf } = stage({ steps, tools: [exporting()] })
    const run = start()
    await settle(run.result)
    void run.cancel('enough')
    expect(await settle(run.result)).toMatchObject({ reason: 'cancelled' })
    expect(ofType(await eventsOf(run), 'tool_result')).toMatchObject([{ outcome: 'interrupted' }])
  })
})
