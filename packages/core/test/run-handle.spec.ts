import { describe, expect, it } from 'vitest'
import { ConfigurationError, memoryLedger, type Ledger } from '@tallystick/core'
import { testTool } from '@tallystick/testkit'
import { stage, type Stage } from './stage.ts'

function asking(turns = 1): Stage {
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const step = {
    text: 'May I?',
    toolCalls: [{ name: 'pay', input: {} }],
    usage: { inputTokens: 7, outputTokens: 2 },
  }
  return stage({ steps: [...Array.from({ length: turns }, () => step), { text: 'Paid.' }], tools: [pay] })
}

describe('the result of a run', () => {
  it('is how it rests: the text, the totals, and what it waits for', async () => {
    const { start, waitUntilSettled: settle } = asking()
    const run = start()
    const rest = await settle(run.result)
    expect(rest).toEqual({
      ...{ agent: 'agent', children: { runs: 0, turns: 0, toolCalls: 0 } },
      ...{ runId: run.id, status: 'suspended', text: 'May I?', output: 'May I?' },
      ...{ usage: { inputTokens: 7, outputTokens: 2 }, turns: 1, toolCalls: 0, seq: rest.seq },
      pendingApprovals: [
        {
          ...{
            runId: run.id,
            toolCallId: rest.pendingApprovals[0]?.toolCallId,
            attempt: 1,
            name: 'pay',
            input: {},
          },
          inputDigest: rest.pendingApprovals[0]?.inputDigest,
        },
      ],
      deferredCalls: [],
      messages: rest.messages,
      toInput: expect.any(Function) as unknown,
    })
    expect(rest.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
  })

  it('after a decision is that of the next rest, for every handle', async () => {
    const { start, waitUntilSettled: settle, runtime } = asking(2)
    const run = start()
    const first = await settle(run.result)
    const other = runtime.resume(run.id)
    await settle(other.result)
    const acknowledgement = other.approve(first.pendingApprovals[0]!.toolCallId, { by: 'ada' })
    expect(run.result).toBe(other.result)
    const second = await settle(run.result)
    expect(await acknowledgement).toEqual({ accepted: true })
    expect(second.seq).toBeGreaterThan(first.seq)
    expect(second).toMatchObject({ status: 'suspended', turns: 2, toolCalls: 1 })
    void run.approve(second.pendingApprovals[0]!.toolCallId, { by: 'ada' })
    expect(await settle(other.result)).toMatchObject({ status: 'done', reason: 'answered', text: 'Paid.' })
  })

  it('stays the same while the run rests, however often it is asked for', async () => {
    const { start, waitUntilSettled: settle, ledger } = asking()
    const run = start()
    const first = await settle(run.result)
    expect(await settle(run.result)).toBe(first)
    expect((await ledger.head(run.id))?.seq).toBe(first.seq)
  })

  it('has no text where the model said nothing', async () => {
    const { play } = stage({ limits: { maxTurns: 0, onLimit: 'stop' } })
    expect(await play()).toMatchObject({
      status: 'done',
      reason: 'turn_limit',
      text: '',
      turns: 0,
      usage: {},
    })
  })

  it('rejects where the ledger is at fault, and so does every command from then on', async () => {
    const ledger = memoryLedger()
    const full: Ledger = {
      ...ledger,
      append: (runId, expected, events, options) =>
        expected.expectedSeq === 0
          ? ledger.append(runId, expected, events, options)
          : Promise.reject(new Error('disk full')),
    }
    const set = stage({ ledger: full })
    const run = set.start()
    await expect(set.waitUntilSettled(run.result)).rejects.toThrow('disk full')
    await expect(set.waitUntilSettled(run.cancel())).rejects.toThrow('disk full')
    await expect(set.waitUntilSettled(run.steer('And?'))).rejects.toThrow('disk full')
    // A caller that resumes the run gets a handle that works, once the ledger does.
    const later = stage({ ledger, clock: set.clock })
    expect(await later.waitUntilSettled(later.runtime.resume(run.id).result)).toMatchObject({
      reason: 'answered',
    })
  })
})

describe('a command to a run that is done', () => {
  it('is refused, as a value, whatever it asks', async () => {
    const { start, waitUntilSettled: settle, runtime, ledger } = stage()
    const run = start()
    await settle(run.result)
    const head = await ledger.head(run.id)
    const acknowledgements = await settle(
      Promise.all([
        run.approve('call_1', { by: 'ada' }),
        run.deny('call_1', { by: 'ada', reason: 'no' }),
        run.steer('And?'),
        run.queue('And?'),
        run.raiseLimit('maxTurns', 99, { by: 'ada' }),
        run.cancel(),
        // Another process, which has yet to find out.
        runtime.resume(run.id).cancel(),
      ]),
    )
    expect(acknowledgements).toEqual(
      acknowledgements.map(() => ({
        ...{ accepted: false, code: 'run_finished' },
        message: expect.stringContaining(`Run ${run.id} is finished`) as string,
      })),
    )
    expect(await ledger.head(run.id)).toEqual(head)
    expect(await ledger.inbox(run.id)).toEqual([])
  })

  it('is refused also where only the ledger knows that it is done', async () => {
    const { start, waitUntilSettled: settle, ledger, clock } = stage()
    const run = start()
    await settle(run.result)
    const other = stage({ ledger, clock })
    const handle = other.runtime.resume(run.id)
    expect(await other.waitUntilSettled(handle.cancel())).toMatchObject({
      accepted: false,
      code: 'run_finished',
    })
  })
})

describe('input of a handle', () => {
  it('that no model could be shown is the caller’s error, at once', async () => {
    const { start, waitUntilSettled: settle } = stage()
    const run = start()
    expect(() => run.steer('')).toThrow(ConfigurationError)
    expect(() => run.queue([])).toThrow(ConfigurationError)
    expect(await settle(run.result)).toMatchObject({ reason: 'answered' })
  })
})

describe('the streams and the result of a handle', () => {
  it('are those of the run in a copy of the handle, an object made from it, and a proxy', async () => {
    const { start, waitUntilSettled: settle } = stage()
    const run = start()
    const views = [{ ...run }, Object.create(run) as typeof run, new Proxy(run, {})]
    for (const { text$, state$ } of views) {
      expect(text$).toBe(run.text$)
      expect(state$).toBe(run.state$)
    }
    for (const { result } of views) expect(await settle(result)).toMatchObject({ runId: run.id })
    expect(Object.keys(run)).toEqual(expect.arrayContaining(['state$', 'text$', 'textUpdates$', 'result']))
  })
})
