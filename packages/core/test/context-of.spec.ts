// A runtime that makes the context of a run from what is on record of it.
import { describe, expect, it } from 'vitest'
import { ConfigurationError, createRuntime, type RecordedRun } from '@tallystick/core'
import { seededRandom, testTool } from '@tallystick/testkit'
import { stage as stageOf, type Stage, type StageOptions } from './stage.ts'

let processes = 0
const stage = (options: StageOptions = {}): Stage =>
  stageOf({ random: seededRandom(++processes), ...options })

const asks = [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }]

async function suspended(options: object, steps: StageOptions['steps'] = asks) {
  const seen: unknown[] = []
  const look = testTool({
    name: 'look',
    check: () => ({ kind: 'ask' }),
    run: ({ context }) => {
      seen.push(context)
      return 'seen'
    },
  })
  const set = stage({ tools: [look], steps })
  const rest = await set.waitUntilSettled(set.runtime.run(set.agent, 'Go.', options).result)
  const { ledger, clock, agent } = set
  const again = (contextOf?: (run: RecordedRun) => unknown) =>
    createRuntime({ ledger, agents: [agent], contextOf, host: { clock, report: () => {} } })
  return { set, seen, rest, again }
}

describe('contextOf', () => {
  it('gives a run that is taken up its context, from what is on record of it', async () => {
    const options = { context: 'at first', subject: 'ada', sessionId: 'chat', tags: ['eu'] }
    const { set, seen, rest, again } = await suspended(options)
    const asked: RecordedRun[] = []
    const runtime = again(async (run) => {
      asked.push(run)
      await Promise.resolve()
      return `of ${run.subject}`
    })
    const run = runtime.resume(rest.runId)
    await set.waitUntilSettled(run.approve(rest.pendingApprovals[0]!, { by: 'ada' }))
    expect((await set.waitUntilSettled(run.result)).text).toBe('Done.')
    expect(seen).toEqual(['of ada'])
    expect(asked).toEqual([
      {
        ...{ runId: rest.runId, agent: 'agent', sessionId: 'chat', subject: 'ada' },
        labels: { tags: ['eu'] },
      },
    ])
  })

  it('is asked each time that a process begins to drive the run, so that what it makes is of the day', async () => {
    const [ask, answer] = asks
    const { set, seen, rest, again } = await suspended({ context: 'at first' }, [ask!, ask!, answer!])
    let asked = 0
    const runtime = again(() => `made ${++asked}`)
    const run = runtime.resume(rest.runId)
    await set.waitUntilSettled(run.approve(rest.pendingApprovals[0]!, { by: 'ada' }))
    const next = await set.waitUntilSettled(run.result)
    expect(next.status).toBe('suspended')
    const later = runtime.resume(rest.runId)
    await set.waitUntilSettled(later.approve(next.pendingApprovals[0]!, { by: 'ada' }))
    expect((await set.waitUntilSettled(later.result)).text).toBe('Done.')
    expect([seen, asked]).toEqual([['made 1', 'made 2'], 2])
  })

  it('is not asked where a context is given, or the run was started without one', async () => {
    for (const [options, context] of [
      [{ context: 'at first' }, 'given'],
      [{}, undefined],
    ] as const) {
      const { set, seen, rest, again } = await suspended(options)
      const runtime = again(() => {
        throw new Error('asked')
      })
      const run = runtime.resume(rest.runId, { context })
      await set.waitUntilSettled(run.approve(rest.pendingApprovals[0]!, { by: 'ada' }))
      await set.waitUntilSettled(run.result)
      expect(seen).toEqual([context])
    }
  })

  it('that fails or makes none refuses the resume, and a later one continues the run', async () => {
    const { set, seen, rest, again } = await suspended({ context: 'at first' })
    const refusal = async (contextOf?: () => unknown): Promise<string> =>
      await set.waitUntilSettled(again(contextOf).resume(rest.runId).result).then(
        () => 'resumed',
        (error: unknown) => (error instanceof ConfigurationError ? error.message : 'another error'),
      )
    expect(await refusal(() => Promise.reject(new Error('no database')))).toContain('no database')
    expect(await refusal(() => undefined)).toContain('or make it in contextOf')
    expect(await refusal()).toContain('or make it in contextOf')
    const run = again(() => 'made').resume(rest.runId)
    await set.waitUntilSettled(run.approve(rest.pendingApprovals[0]!, { by: 'ada' }))
    await set.waitUntilSettled(run.result)
    expect(seen).toEqual(['made'])
  })
})
