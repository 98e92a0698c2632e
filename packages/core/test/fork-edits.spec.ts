import { describe, expect, it } from 'vitest'
import {
  ConfigurationError,
  defineAgent,
  type ForkEdit,
  type Ledger,
  type RunResult,
  type RuntimeEvent,
} from '@tallystick/core'
import type { CallVerdict, JsonObject } from '@tallystick/core/vocabulary'
import { scriptedModel, seededRandom, testTool, type ScriptedReply, type TestTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage, type Stage } from './stage.ts'

const usage = { inputTokens: 100, outputTokens: 10 }
/** Looks and books a seat at once, then pays, then says so. */
const script: readonly ScriptedReply[] = [
  {
    toolCalls: [
      { name: 'look', input: { at: 'stock' } },
      { name: 'book', input: { seat: 4 } },
    ],
    usage,
  },
  { toolCalls: [{ name: 'pay', input: { amount: 5 } }], usage },
  { text: 'Done.', usage },
]

interface Shop extends Stage {
  readonly tools: readonly TestTool[]
  /** How often each tool has run. */
  readonly runs: () => readonly number[]
}

let shops = 0

/** A process whose tools may be asked about, or put off. */
function open(
  steps: readonly ScriptedReply[] = script,
  own: Partial<Pick<Stage, 'ledger' | 'clock'>> & {
    readonly pays?: CallVerdict
    readonly later?: boolean
  } = {},
): Shop {
  const { pays = { kind: 'run' }, later = false, ...rest } = own
  const pay = testTool({
    name: 'pay',
    effect: 'write',
    check: () => pays,
    run: ({ input }, report) => {
      if (later) report.defer('transfer-7')
      return `${JSON.stringify(input)} paid`
    },
  })
  const book = testTool({ name: 'book', effect: 'write', run: () => 'booked' })
  const tools = [testTool({ name: 'look', run: () => '5 left' }), book, pay]
  const set = stage({ steps, tools, random: seededRandom(++shops), ...rest })
  return { ...set, tools, runs: () => tools.map(({ runs }) => runs.length) }
}

interface Recorded extends Shop {
  readonly runId: string
  readonly events: readonly RuntimeEvent[]
  /** The nth event of a type. */
  readonly at: (type: RuntimeEvent['type'], nth?: number) => RuntimeEvent
}

/** A run that is done, with what it said. */
async function record(shop = open(), drive?: (waiting: RunResult) => Promise<unknown>): Promise<Recorded> {
  const waiting = await shop.play()
  await drive?.(waiting)
  const events = checkedRun(await shop.eventsOf(waiting.runId))
  expect(events.at(-1)?.type).toBe('run_finished')
  const at = (type: RuntimeEvent['type'], nth = 1): RuntimeEvent =>
    events.filter((event) => event.type === type)[nth - 1]!
  return { ...shop, runId: waiting.runId, events, at }
}

/** Forks a run in another process; returns how the fork stopped, and what is on record of it. */
async function forked(
  { ledger, clock, runId }: Recorded,
  atSeq: number,
  {
    steps,
    edit,
    later = false,
  }: { readonly steps: readonly ScriptedReply[]; readonly edit?: ForkEdit; readonly later?: boolean },
): Promise<{ shop: Shop; result: RunResult; events: readonly RuntimeEvent[] }> {
  const shop = open(steps, { ledger, clock, pays: { kind: 'ask' }, later })
  const fork = shop.runtime.fork(runId, { atSeq, ...(edit && { edit }) })
  const result = await shop.waitUntilSettled(fork.result)
  return { shop, result, events: checkedRun(await shop.eventsOf(fork)) }
}

const results = (events: readonly RuntimeEvent[]): readonly unknown[] =>
  ofType(events, 'tool_result').map(({ name, outcome, reused }) => [name, outcome, reused !== undefined])

describe('a fork where calls are under way', () => {
  it('takes from the record how they ended, a write that may not be started twice included', async () => {
    const run = await record()
    const { shop, result, events } = await forked(run, run.at('tool_started', 2).seq, {
      steps: [{ text: 'Enough.' }],
    })
    expect(result).toMatchObject({ reason: 'answered', text: 'Enough.' })
    expect(results(events)).toEqual([
      ['look', 'success', true],
      ['book', 'success', true],
    ])
    expect(shop.runs()).toEqual([0, 0, 0])
    expect(ofType(events, 'run_resumed')).toMatchObject([{ why: 'command', inDoubt: [] }])
    expect(JSON.stringify(shop.model.requests[0]?.messages)).toContain('booked')
  })

  it('gives one of them another result, and takes that of the others from the record', async () => {
    const run = await record()
    const [look] = ofType(run.events, 'tool_started')
    const edit = {
      results: [{ toolCallId: look!.toolCallId, content: '0 left', outcome: 'failed' as const }],
    }
    const { shop, events } = await forked(run, run.at('tool_started', 2).seq, {
      steps: [{ text: 'Sold out.' }],
      edit,
    })
    expect(results(events)).toEqual([
      ['look', 'failed', false],
      ['book', 'success', true],
    ])
    expect(JSON.stringify(shop.model.requests[0]?.messages)).toContain('0 left')
    expect(shop.runs()).toEqual([0, 0, 0])
  })

  it('reads the record no further than to their results', async () => {
    const run = await record()
    const read: number[] = []
    const ledger: Ledger = {
      ...run.ledger,
      async *read(runId, range) {
        for await (const event of run.ledger.read(runId, range)) {
          if (runId === run.runId && range?.fromSeq !== undefined && range.fromSeq > 1) read.push(event.seq)
          yield event
        }
      },
    }
    const { seq } = run.at('tool_started', 2)
    const { events } = await forked({ ...run, ledger }, seq, { steps: [{ text: 'Enough.' }] })
    expect(results(events)).toHaveLength(2)
    expect(Math.max(...read)).toBe(run.at('tool_results_injected').seq)
  })

  it('leaves in doubt what the record says nothing of', async () => {
    const shop = open([{ toolCalls: [{ name: 'book', input: {} }] }])
    const run = shop.start()
    const started = await new Promise<RuntimeEvent>((resolve) => {
      run.events$.subscribe((event) => event.type === 'tool_started' && resolve(event))
    })
    await shop.runtime.drain(0)
    const events = await shop.eventsOf(run)
    const ended = events.some(({ type }) => type === 'tool_result')
    const next = open([{ text: 'Who knows.' }], { ledger: shop.ledger, clock: shop.clock })
    const fork = next.runtime.fork(run.id, { atSeq: started.seq })
    await next.waitUntilSettled(fork.result)
    const own = checkedRun(await next.eventsOf(fork))
    expect(results(own)).toEqual([['book', ended ? 'success' : 'interrupted', ended]])
  })

  it('takes from the record what was settled later, and does not put it off again', async () => {
    const shop = open(script, { later: true })
    const settled = await record(shop, async ({ runId, deferredCalls: [call] }) => {
      await shop.runtime.settle(runId, call!.toolCallId, 'transferred')
      await shop.waitUntilSettled(shop.runtime.resume(runId).result)
    })
    const behind = { steps: script.slice(1), later: true }
    const before = await forked(settled, settled.at('tool_results_injected').seq, behind)
    expect(before.result).toMatchObject({ status: 'suspended', deferredCalls: [] })
    const during = await forked(settled, settled.at('tool_deferred').seq, {
      steps: [{ text: 'Paid.' }],
      later: true,
    })
    expect(during.result).toMatchObject({ reason: 'answered', text: 'Paid.' })
    expect(results(during.events).at(-1)).toEqual(['pay', 'success', true])
    const { toolCallId } = ofType(settled.events, 'tool_deferred')[0]!
    const edit = { results: [{ toolCallId, content: 'bounced', outcome: 'failed' as const }] }
    const other = await forked(settled, settled.at('tool_deferred').seq, { steps: [{ text: 'No.' }], edit })
    expect(results(other.events).at(-1)).toEqual(['pay', 'failed', false])
    expect([before, during, other].map(({ shop: { runs } }) => runs()[2])).toEqual([0, 0, 0])
  })
})

describe('a fork where a call waits for an approval', () => {
  const asking = (input?: JsonObject | 'denied'): Promise<Recorded> => {
    const shop = open(script, { pays: { kind: 'ask' } })
    return record(shop, async ({ runId, pendingApprovals: [approval] }) => {
      const run = shop.runtime.resume(runId)
      if (input === 'denied') {
        await shop.waitUntilSettled(run.deny(approval!.toolCallId, { by: 'ann', reason: 'no' }))
        return await shop.waitUntilSettled(run.result)
      }
      await shop.waitUntilSettled(run.approve(approval!.toolCallId, { by: 'ann', ...(input && { input }) }))
      return await shop.waitUntilSettled(run.result)
    })
  }

  it('decides differently from the run, on record', async () => {
    const run = await asking()
    const requested = run.at('approval_requested')
    const { toolCallId = '' } = requested
    const denied = await forked(run, requested.seq, {
      steps: [{ text: 'Not paid.' }],
      edit: { approvals: [{ toolCallId, by: 'bob', approved: false, reason: 'too dear' }] },
    })
    expect(denied.result).toMatchObject({ reason: 'answered', text: 'Not paid.' })
    expect(ofType(denied.events, 'approval_decided')).toMatchObject([
      { approved: false, by: 'bob', reason: 'too dear' },
    ])
    expect(results(denied.events).at(-1)).toEqual(['pay', 'denied', false])
    expect(JSON.stringify(denied.shop.model.requests[0]?.messages)).toContain(
      'bob denied this call: too dear',
    )
    expect(denied.shop.runs()).toEqual([0, 0, 0])
  })

  it('is served the recorded result by the same decision, and runs the tool by one with another input', async () => {
    const run = await asking()
    const requested = run.at('approval_requested')
    const approval = { toolCallId: requested.toolCallId!, by: 'bob', approved: true } as const
    const steps = [{ text: 'Paid.' }]
    const same = await forked(run, requested.seq, { steps, edit: { approvals: [approval] } })
    expect([results(same.events).at(-1), same.shop.runs()[2]]).toEqual([['pay', 'success', true], 0])
    const less = await forked(run, requested.seq, {
      steps,
      edit: { approvals: [{ ...approval, input: { amount: 3 } }] },
    })
    expect(less.shop.tools[2]?.runs.map(({ input }) => input)).toEqual([{ amount: 3 }])
    expect(results(less.events).at(-1)).toEqual(['pay', 'success', false])
  })

  it('is not served the result of an input that an approver put in the place of the requested one', async () => {
    const run = await asking({ amount: 3 })
    const { toolCallId = '', seq } = run.at('approval_requested')
    const steps = [{ text: 'Paid.' }]
    const edit = (own: object): ForkEdit => ({
      approvals: [{ toolCallId, by: 'bob', approved: true, ...own }],
    })
    const asAsked = await forked(run, seq, { steps, edit: edit({}) })
    expect(asAsked.shop.tools[2]?.runs.map(({ input }) => input)).toEqual([{ amount: 5 }])
    const asChanged = await forked(run, seq, { steps, edit: edit({ input: { amount: 3 } }) })
    expect([results(asChanged.events).at(-1), asChanged.shop.runs()[2]]).toEqual([
      ['pay', 'success', true],
      0,
    ])
  })

  it('runs what was denied in the other run: that nothing ran is not a result of a tool', async () => {
    const run = await asking('denied')
    const { toolCallId = '', seq } = run.at('approval_requested')
    const edit: ForkEdit = { approvals: [{ toolCallId, by: 'bob', approved: true }] }
    const { shop, events } = await forked(run, seq, { steps: [{ text: 'Paid.' }], edit })
    expect(shop.runs()).toEqual([0, 0, 1])
    expect(results(events).at(-1)).toEqual(['pay', 'success', false])
  })

  it('refuses to decide about a call that waits for nothing there', async () => {
    const run = await asking()
    const { toolCallId = '', seq } = run.at('approval_requested')
    const approvals = [{ toolCallId, by: 'bob', approved: true }] as const
    for (const [atSeq, given] of [
      [run.at('approval_decided').seq, approvals],
      [seq - 1, approvals],
      [seq, [{ ...approvals[0], toolCallId: 'call_x' }]],
    ] as const) {
      const refused = forked(run, atSeq, { steps: [], edit: { approvals: given } })
      await expect(refused).rejects.toThrow(ConfigurationError)
      await expect(refused).rejects.toThrow(/waits for no approval at event \d+/)
    }
  })
})

describe('a fork by another agent', () => {
  it('costs its changed tail only: the model is asked for what comes after, and what it says is another’s', async () => {
    const run = await record()
    const { ledger, clock, runId } = run
    const model = scriptedModel([{ text: 'I am another.', usage }], 'other')
    const [look, book] = run.tools
    const agent = defineAgent({
      ...{ name: 'agent', instructions: 'Act politely.' },
      model,
      tools: [look!, book!],
    })
    const shop = open([], { ledger, clock })
    const fork = shop.runtime.fork(runId, { atSeq: run.at('tool_results_injected', 2).seq, agent })
    expect(await shop.waitUntilSettled(fork.result)).toMatchObject({
      reason: 'answered',
      text: 'I am another.',
    })
    const [request, ...others] = model.requests
    expect([request?.instructions, request?.tools.map(({ name }) => name), others]).toEqual([
      ...['Act politely.', ['look', 'book'], []],
    ])
    const own = checkedRun(await shop.eventsOf(fork)).filter(({ epoch }) => epoch > 1)
    expect(ofType(own, 'usage_updated').map((event) => event.usage)).toEqual([usage])
    expect(ofType(own, 'model_call_started')).toMatchObject([{ model: { modelId: 'other' } }])
    expect(run.runs()).toEqual([1, 1, 1])
  })

  it('has no tool any more that was taken away, and reads that', async () => {
    const run = await record()
    const { ledger, clock, runId } = run
    const model = scriptedModel([...script.slice(1, 2), { text: 'I cannot pay.' }])
    const agent = defineAgent({ name: 'agent', instructions: 'Act.', model, tools: run.tools.slice(0, 2) })
    const shop = open([], { ledger, clock })
    const fork = shop.runtime.fork(runId, { atSeq: run.at('tool_results_injected').seq, agent })
    expect(await shop.waitUntilSettled(fork.result)).toMatchObject({ text: 'I cannot pay.' })
    const events = checkedRun(await shop.eventsOf(fork))
    expect(results(events).at(-1)).toEqual(['pay', 'unknown_tool', false])
  })
})
