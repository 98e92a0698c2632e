import { describe, expect, it } from 'vitest'
import {
  ConfigurationError,
  createRuntime,
  defineAgent,
  type Ledger,
  memoryLedger,
  type Message,
  type RuntimeEvent,
  type Tool,
} from '@tallystick/core'
import {
  checkLaws,
  checkTranscript,
  manualClock,
  scriptedModel,
  type ScriptedStep,
  testTool,
  type TestToolOptions,
  waitUntilSettled,
} from '@tallystick/testkit'
import { auditAll } from '../src/machine/laws.ts'

const asks = (...names: readonly string[]): ScriptedStep => ({
  toolCalls: names.map((name) => ({ name, input: {} })),
})
const textsOf = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap((message) =>
    (message.role === 'tool' ? message.results.flatMap(({ content }) => content) : message.parts).flatMap(
      (part) => (part.type === 'text' ? [part.text] : []),
    ),
  )

/** A tool that works in the background, until the test ends its calls. */
function beside(options: Partial<TestToolOptions> & { readonly leave?: boolean } = {}): {
  readonly tool: Tool
  readonly starts: { input: object; end: (text: string) => void; fail: (error: Error) => void }[]
} {
  const { leave = false, ...more } = options
  const starts: { input: object; end: (text: string) => void; fail: (error: Error) => void }[] = []
  const tool = testTool({
    name: 'work',
    run: ({ input }) =>
      new Promise<string>((resolve, reject) => starts.push({ input, end: resolve, fail: reject })),
    ...more,
  })
  return { tool: { ...tool, background: leave ? 'leave' : 'wait' }, starts }
}

function world(tools: readonly Tool[], ...steps: readonly ScriptedStep[]) {
  const clock = manualClock()
  const ledger = memoryLedger({ clock })
  const model = scriptedModel(steps)
  const agent = defineAgent({ name: 'clerk', instructions: 'Work.', model, tools })
  const process = (own: Ledger = ledger) =>
    createRuntime({ ledger: own, agents: [agent], host: { clock, report: () => {} } })
  const settled = <T>(promise: Promise<T>): Promise<T> => waitUntilSettled(clock, promise)
  const read = async (runId: string): Promise<readonly RuntimeEvent[]> => {
    const events = await Array.fromAsync(ledger.read(runId as never))
    expect(checkLaws(events)).toEqual([])
    auditAll(events)
    for (const request of model.requests) expect(checkTranscript(request.messages)).toEqual([])
    return events
  }
  const until = async (isSo: () => boolean): Promise<void> => {
    for (let turn = 0; turn < 500 && !isSo(); turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(isSo()).toBe(true)
  }
  return { clock, ledger, model, agent, process, runtime: process(), settled, read, until }
}

const ends = (events: readonly RuntimeEvent[]): readonly unknown[] =>
  events.flatMap((event) =>
    event.type === 'background_ended' ? [[event.outcome, event.message !== undefined]] : [],
  )

describe('work in the background', () => {
  it('gives the model a handle at once, and the result before its next turn', async () => {
    const { tool, starts } = beside()
    const look = testTool({
      name: 'look',
      run: async () => {
        starts[0]!.end('It is done.')
        await Promise.resolve()
        return 'Seen.'
      },
    })
    const { model, runtime, agent, settled, read } = world([tool, look], asks('work'), asks('look'), {
      text: 'Both.',
    })
    const run = runtime.run(agent, 'Go.')
    expect(await settled(run.result)).toMatchObject({ status: 'done', reason: 'answered', text: 'Both.' })
    const [, second, third] = model.requests
    expect(textsOf(second!.messages).at(-1)).toMatch(/^It has started, as background 1_1_1\. Go on/)
    expect(textsOf(third!.messages).slice(-3)).toEqual([
      'Seen.',
      expect.stringMatching(/^\(Not a message of the user: .* It ended as success\.\)$/),
      'It is done.',
    ])
    const events = await read(run.id)
    expect(ends(events)).toEqual([['success', true]])
    expect(events.filter(({ type }) => type === 'tool_result')).toHaveLength(2)
  })

  it('is waited for by a run that would end, and answered then', async () => {
    const { tool, starts } = beside()
    const { model, runtime, agent, settled, read, until } = world(
      [tool],
      asks('work', 'work'),
      { text: 'Wait.' },
      { text: 'One.' },
      { text: 'Two.' },
    )
    const run = runtime.run(agent, 'Go.')
    await until(() => model.requests.length === 2)
    starts[1]!.end('second')
    await until(() => model.requests.length === 3)
    starts[0]!.fail(new Error('Broken.'))
    expect(await settled(run.result)).toMatchObject({ status: 'done', text: 'Two.' })
    expect(textsOf(model.requests[3]!.messages).join('\n')).toMatch(/second[^]*ended as failed[^]*Broken\./)
    expect(ends(await read(run.id))).toEqual([
      ['success', true],
      ['failed', true],
    ])
  })

  it('is left by a run that need not wait for it, on record', async () => {
    const { tool, starts } = beside({ leave: true })
    const { runtime, agent, settled, read } = world([tool], asks('work'), { text: 'Bye.' })
    const run = runtime.run(agent, 'Go.')
    expect(await settled(run.result)).toMatchObject({ status: 'done', reason: 'answered', text: 'Bye.' })
    const before = await read(run.id)
    expect(ends(before)).toEqual([['interrupted', false]])
    starts[0]!.end('Too late.')
    expect(await read(run.id)).toEqual(before)
  })

  it('is asked to stop by a cancel, and no model reads what it says then', async () => {
    const asked: string[] = []
    const { tool } = beside({
      run: ({ cancelled$ }) => {
        cancelled$.subscribe((reason) => asked.push(reason))
        return new Promise<string>(() => {})
      },
    })
    const { model, runtime, agent, settled, read, until } = world([tool], asks('work'), { text: 'Wait.' })
    const run = runtime.run(agent, 'Go.')
    await until(() => model.requests.length === 2)
    expect(await settled(run.cancel('enough'))).toEqual({ accepted: true })
    expect(await settled(run.result)).toMatchObject({ reason: 'cancelled' })
    expect(asked).toEqual(['enough'])
    expect(ends(await read(run.id))).toEqual([['cancelled', true]])
  })

  it.each([
    ['report', 'interrupted', 1],
    ['rerun', 'success', 2],
  ] as const)('in doubt after a crash is treated as its tool says: %s', async (recovery, outcome, count) => {
    const { tool, starts } = beside({ effect: 'write', recovery } as never)
    const { ledger, model, runtime, agent, process, settled, read, until } = world(
      [tool],
      asks('work'),
      { text: 'Wait.' },
      { text: 'Then.' },
    )
    const run = runtime.run(agent, 'Go.')
    await until(() => model.requests.length === 2)
    await runtime.drain(0)
    const other = process()
    const resumed = other.resume(run.id, { takeOver: true })
    if (recovery === 'rerun') {
      await until(() => starts.length === 2)
      starts[1]!.end('Again.')
    }
    expect(await settled(resumed.result)).toMatchObject({ status: 'done', text: 'Then.' })
    expect(starts).toHaveLength(count)
    const events = await read(run.id)
    expect(ends(events)).toEqual([[outcome, true]])
    const keys = events.flatMap((event) => (event.type === 'tool_started' ? [event.idempotencyKey] : []))
    expect(new Set(keys).size).toBe(1)
    const resumes = events.flatMap((event) => (event.type === 'run_resumed' ? [event.inDoubt.length] : []))
    expect(resumes).toEqual([1])
    expect(await ledger.inbox(run.id)).toEqual([])
  })

  it('starts only once a person has approved it, and not at all past a limit', async () => {
    const { tool, starts } = beside({ effect: 'write', check: () => ({ kind: 'ask' }) } as never)
    const { runtime, agent, settled, read, until } = world(
      [tool],
      asks('work', 'work'),
      { text: 'One.' },
      { text: 'Done.' },
    )
    const run = runtime.run(agent, 'Go.', { limits: { maxToolCalls: 1 } })
    const { pendingApprovals } = await settled(run.result)
    expect(starts).toHaveLength(0)
    for (const { toolCallId } of pendingApprovals) await settled(run.approve(toolCallId, { by: 'ada' }))
    await until(() => starts.length === 1)
    starts[0]!.end('Paid.')
    expect(await settled(run.result)).toMatchObject({ status: 'done' })
    const events = await read(run.id)
    expect(starts).toHaveLength(1)
    expect(events.filter(({ type }) => type === 'tool_started')).toHaveLength(1)
  })

  it('that would be settled later has failed, and nobody waits for ever', async () => {
    const tool = testTool({
      name: 'work',
      run: (_, report) => {
        report.defer('job')
        return ''
      },
    })
    const { runtime, agent, settled, read } = world(
      [{ ...tool, background: 'wait' }],
      asks('work'),
      { text: 'Wait.' },
      { text: 'Done.' },
    )
    const run = runtime.run(agent, 'Go.')
    expect(await settled(run.result)).toMatchObject({ status: 'done', text: 'Done.' })
    expect(ends(await read(run.id))).toEqual([['failed', true]])
  })

  it('is made at once where guardrails look at results', async () => {
    const { tool, starts } = beside()
    const { ledger, clock, settled, until } = world([])
    const agent = defineAgent({
      name: 'guarded',
      instructions: 'Work.',
      model: scriptedModel([asks('work'), { text: 'Done.' }]),
      tools: [tool],
      guardrails: [{ name: 'mask', on: 'tool_output', check: () => ({ replace: '***' }) } as never],
    })
    const run = createRuntime({ ledger, agents: [agent], host: { clock } }).run(agent, 'Go.')
    await until(() => starts.length === 1)
    starts[0]!.end('secret')
    const { messages } = await settled(run.result)
    expect(textsOf(messages)).not.toContain('secret')
  })

  it.each([
    [{ retry: { maxAttempts: 2, baseMs: 1, capMs: 1, maxRetryAfterMs: 1 } }],
    [{ recovery: 'ask' }],
    [{ child: 'x' }],
  ])('cannot be had together with %o', (other) => {
    const tool = { ...beside().tool, ...other } as Tool
    const define = () => defineAgent({ name: 'a', instructions: '', model: scriptedModel([]), tools: [tool] })
    expect(define).toThrow(ConfigurationError)
  })
})
