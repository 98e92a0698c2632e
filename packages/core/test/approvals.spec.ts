import { describe, expect, it } from 'vitest'
import { memoryLedger, type Ledger, type RunId, type RunResult, type RuntimeEvent } from '@tallystick/core'
import { type OutsideCommand } from '@tallystick/core/vocabulary'
import { testTool, type TestTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage, typesOf, type Stage } from './stage.ts'

function asking(name: string, more: Partial<Parameters<typeof testTool>[0]> = {}): TestTool {
  return testTool({
    name,
    effect: 'write',
    check: () => ({ kind: 'ask', reason: `${name} needs a person` }),
    ...more,
  })
}

const idsOf = ({ pendingApprovals }: RunResult): readonly string[] =>
  pendingApprovals.map(({ toolCallId }) => toolCallId)

const outcomes = (events: readonly RuntimeEvent[]): readonly unknown[] =>
  ofType(events, 'tool_result').map(({ name, outcome }) => [name, outcome])

type Decision = Extract<OutsideCommand, { readonly type: 'approve' | 'deny' }>

/** How a person's decision can reach a run: over its handle, or from another process over the ledger's inbox. */
const ways: readonly [string, (set: Stage, runId: RunId, command: Decision) => Promise<RunResult>][] = [
  [
    'over the handle',
    async ({ runtime, waitUntilSettled: settle }, runId, command) => {
      const run = runtime.resume(runId)
      await settle(run.result)
      const sent =
        command.type === 'approve'
          ? run.approve(command.toolCallId, { by: command.by, input: command.input })
          : run.deny(command.toolCallId, { by: command.by, reason: command.reason })
      expect(await settle(sent)).toEqual({ accepted: true })
      return await settle(run.result)
    },
  ],
  [
    'from another process',
    async ({ ledger, agent, clock, waitUntilSettled: settle }, runId, command) => {
      await ledger.put(runId, { key: 'k1', command, at: clock.now() })
      const other = stage({ ledger, clock, model: agent.model, tools: agent.tools })
      return await settle(other.runtime.resume(runId).result)
    },
  ],
]

describe.each(ways)('a decision %s', (_name, decide) => {
  it('lets the call run with the input that the person has edited, once', async () => {
    const pay = asking('pay')
    const set = stage({
      steps: [{ toolCalls: [{ name: 'pay', input: { usd: 5 } }] }, { text: 'Paid.' }],
      tools: [pay],
    })
    const rest = await set.play()
    expect(rest).toMatchObject({
      status: 'suspended',
      pendingApprovals: [{ name: 'pay', input: { usd: 5 }, reason: 'pay needs a person' }],
    })
    const [toolCallId = ''] = idsOf(rest)
    const result = await decide(set, rest.runId, {
      type: 'approve',
      toolCallId,
      by: 'ada',
      input: { usd: 4 },
    })
    expect(result).toMatchObject({ status: 'done', reason: 'answered', text: 'Paid.' })
    expect(pay.runs.map(({ input }) => input)).toEqual([{ usd: 4 }])
    const events = checkedRun(await set.eventsOf(rest.runId))
    expect(ofType(events, 'approval_decided')).toMatchObject([
      { approved: true, by: 'ada', input: { usd: 4 } },
    ])
    // The decision is bound to what was asked about; what the model wrote stays as it was.
    const [asked] = ofType(events, 'approval_requested')
    expect(ofType(events, 'approval_decided')[0]?.inputDigest).toBe(asked?.inputDigest)
    expect(ofType(events, 'tool_request_ready')[0]?.input).toEqual({ usd: 5 })
  })

  it('tells the model why it was denied, and runs nothing', async () => {
    const pay = asking('pay')
    const set = stage({
      steps: [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'I see.' }],
      tools: [pay],
    })
    const rest = await set.play()
    const [toolCallId = ''] = idsOf(rest)
    const result = await decide(set, rest.runId, {
      type: 'deny',
      toolCallId,
      by: 'ada',
      reason: 'the shop is shut',
    })
    expect(result).toMatchObject({ status: 'done', text: 'I see.', toolCalls: 0 })
    expect(pay.runs).toEqual([])
    expect(set.model.requests[1]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      results: [
        { outcome: 'denied', content: [{ type: 'text', text: 'ada denied this call: the shop is shut' }] },
      ],
    })
    checkedRun(await set.eventsOf(rest.runId))
  })
})

describe('a decision about a call', () => {
  const paying = async (
    ledger?: Ledger,
  ): Promise<{ set: Stage; rest: RunResult; pay: TestTool; toolCallId: string }> => {
    const pay = asking('pay', { run: () => new Promise(() => {}) })
    const set = stage({
      steps: [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }],
      tools: [pay],
      ...(ledger && { ledger }),
    })
    const rest = await set.play()
    return { set, rest, pay, toolCallId: idsOf(rest)[0]! }
  }

  it('is taken once: a second is refused, and changes nothing', async () => {
    const { set, rest, pay, toolCallId } = await paying()
    const run = set.runtime.resume(rest.runId)
    const acknowledgements = await set.waitUntilSettled(
      Promise.all([
        run.approve(toolCallId, { by: 'ada' }),
        run.deny(toolCallId, { by: 'bob', reason: 'no' }),
        run.approve(toolCallId, { by: 'cat', input: { usd: 1_000 } }),
      ]),
    )
    expect(acknowledgements[0]).toEqual({ accepted: true })
    expect(acknowledgements.slice(1)).toMatchObject([
      { accepted: false, code: 'not_awaiting_approval' },
      { accepted: false, code: 'not_awaiting_approval' },
    ])
    expect(await set.waitUntilSettled(run.approve(toolCallId, { by: 'dan' }))).toMatchObject({
      accepted: false,
      message: expect.stringContaining('it is started'),
    })
    expect(pay.runs.map(({ input }) => input)).toEqual([{}])
    expect(ofType(await set.eventsOf(rest.runId), 'approval_decided')).toMatchObject([{ by: 'ada' }])
  })

  it('is refused for a call that the run does not have, and one that needs none', async () => {
    const look = testTool({ name: 'look', run: () => new Promise(() => {}) })
    const set = stage({
      steps: [{ toolCalls: ['look', 'pay'].map((name) => ({ name, input: {} })) }],
      tools: [look, asking('pay')],
    })
    const run = set.start()
    const started = new Promise<string>((resolve) => {
      run.events$.subscribe((event) => {
        if (event.type === 'tool_started') resolve(event.toolCallId)
      })
    })
    const looking = await set.waitUntilSettled(started)
    expect(await set.waitUntilSettled(run.approve('call_1', { by: 'ada' }))).toMatchObject({
      ...{ accepted: false, code: 'unknown_call' },
      message: `Run ${run.id} has no open tool call call_1; show the run to see which wait.`,
    })
    expect(await set.waitUntilSettled(run.approve(looking, { by: 'ada' }))).toMatchObject({
      accepted: false,
      code: 'not_awaiting_approval',
    })
  })

  it('is refused once the call has its result', async () => {
    const { set, rest, toolCallId } = await paying()
    const run = set.runtime.resume(rest.runId)
    await set.waitUntilSettled(run.deny(toolCallId, { by: `ada${'!'.repeat(200)}`, reason: 'no' }))
    await set.waitUntilSettled(run.result)
    expect(await set.waitUntilSettled(run.approve(toolCallId, { by: 'bob' }))).toMatchObject({
      code: 'not_awaiting_approval',
      message: expect.stringContaining(`${toolCallId} was denied before, by ada${'!'.repeat(97)}… (event`),
    })
  })

  it('is refused as it is where the ledger does not say in a second who decided before', async () => {
    let isHanging = false
    const sound = memoryLedger()
    const hanging: Ledger = {
      ...sound,
      async *find(query) {
        if (isHanging) await new Promise(() => {})
        yield* sound.find(query)
      },
    }
    const { set, rest, toolCallId } = await paying(hanging)
    const run = set.runtime.resume(rest.runId)
    await set.waitUntilSettled(run.deny(toolCallId, { by: 'ada', reason: 'no' }))
    await set.waitUntilSettled(run.result)
    isHanging = true
    const before = set.clock.now()
    expect(await set.waitUntilSettled(run.approve(toolCallId, { by: 'bob' }))).toMatchObject({
      accepted: false,
      code: 'run_finished',
    })
    expect([set.clock.now() - before, set.clock.pending]).toEqual([1_000, 0])
  })

  it('names who decided before in characters that only show', async () => {
    const { set, rest, toolCallId } = await paying()
    const run = set.runtime.resume(rest.runId)
    // The name is cut between the two halves of the emoji.
    const by = `\u001b[2Jada\u202e\u2028${'!'.repeat(90)}\u{1f600}`
    await set.waitUntilSettled(run.deny(toolCallId, { by, reason: 'no' }))
    await set.waitUntilSettled(run.result)
    expect(await set.waitUntilSettled(run.approve(toolCallId, { by: 'bob' }))).toMatchObject({
      message: expect.stringContaining(`before, by �[2Jada��${'!'.repeat(90)}�… (event`),
    })
  })
})

describe('a decision that comes at once', () => {
  it('is taken before the run stops, and no process takes the run over for it', async () => {
    const pay = asking('pay')
    const ledger = memoryLedger()
    // The way to the inbox is long: the run has nothing more to do before the decision is there.
    const slow: Ledger = {
      ...ledger,
      async put(runId, entry) {
        for (let turn = 0; turn < 100; turn++) await Promise.resolve()
        return await ledger.put(runId, entry)
      },
    }
    const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]
    const set = stage({ steps, tools: [pay], ledger: slow })
    const run = set.start()
    const acknowledgements: unknown[] = []
    run.events$.subscribe((event) => {
      if (event.type !== 'approval_requested') return
      void run
        .approve(event.toolCallId, { by: 'ada' })
        .then((acknowledgement) => acknowledgements.push(acknowledgement))
    })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ status: 'done', text: 'Paid.' })
    expect(acknowledgements).toEqual([{ accepted: true }])
    expect((await set.ledger.head(run.id))?.epoch).toBe(1)
    expect(typesOf(checkedRun(await set.eventsOf(run)))).not.toContain('run_resumed')
  })
})

describe('several calls that wait for a person', () => {
  const names = ['first', 'second', 'third']
  const threeCalls = (): { set: Stage; tools: readonly TestTool[] } => {
    const tools = names.map((name) => asking(name))
    const toolCalls = names.map((name) => ({ name, input: {} }))
    return { set: stage({ steps: [{ toolCalls }, { text: 'All done.' }], tools }), tools }
  }

  it('are asked about together, and decided in any order; writes run in the order of the request', async () => {
    const { set } = threeCalls()
    const rest = await set.play()
    expect(rest.pendingApprovals.map(({ name }) => name)).toEqual(names)
    const run = set.runtime.resume(rest.runId)
    const [first, second, third] = idsOf(rest) as [string, string, string]
    await set.waitUntilSettled(run.approve(third, { by: 'ada' }))
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ status: 'suspended', toolCalls: 0 })
    await set.waitUntilSettled(run.deny(second, { by: 'ada', reason: 'not now' }))
    await set.waitUntilSettled(run.approve(first, { by: 'ada' }))
    expect(await set.waitUntilSettled(run.result)).toMatchObject({
      status: 'done',
      text: 'All done.',
      toolCalls: 2,
    })
    const events = checkedRun(await set.eventsOf(rest.runId))
    expect(ofType(events, 'tool_started').map(({ name }) => name)).toEqual(['first', 'third'])
    const results = set.model.requests[1]?.messages.at(-1)
    expect(results).toMatchObject({
      results: [{ outcome: 'success' }, { outcome: 'denied' }, { outcome: 'success' }],
    })
  })

  it('may be decided all at once', async () => {
    const { set, tools } = threeCalls()
    const rest = await set.play()
    const run = set.runtime.resume(rest.runId)
    const acknowledgements = Promise.all(idsOf(rest).map((id) => run.approve(id, { by: 'ada' })))
    expect(await set.waitUntilSettled(acknowledgements)).toEqual(names.map(() => ({ accepted: true })))
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ status: 'done', toolCalls: 3 })
    expect(tools.map(({ runs }) => runs.length)).toEqual([1, 1, 1])
    expect(outcomes(checkedRun(await set.eventsOf(rest.runId)))).toEqual(
      names.map((name) => [name, 'success']),
    )
  })

  it('hold back no read that needs no person', async () => {
    const look = testTool({ name: 'look' })
    const set = stage({
      steps: [{ toolCalls: ['pay', 'look'].map((name) => ({ name, input: {} })) }],
      tools: [asking('pay'), look],
    })
    expect(await set.play()).toMatchObject({ status: 'suspended', toolCalls: 1 })
    expect(look.runs).toHaveLength(1)
  })

  it('hold back every write after them', async () => {
    const write = testTool({ name: 'write', effect: 'write' })
    const set = stage({
      steps: [{ toolCalls: ['pay', 'write'].map((name) => ({ name, input: {} })) }, { text: 'Done.' }],
      tools: [asking('pay'), write],
    })
    const rest = await set.play()
    expect(write.runs).toEqual([])
    const run = set.runtime.resume(rest.runId)
    await set.waitUntilSettled(run.approve(idsOf(rest)[0]!, { by: 'ada' }))
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered' })
    expect(write.runs).toHaveLength(1)
  })
})
