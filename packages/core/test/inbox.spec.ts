import { memoryLedger, type Ledger, type RuntimeEvent } from '@tallystick/core'
import type { InboxEntry, OutsideCommand } from '@tallystick/core/vocabulary'
import { testTool, sampleRunId } from '@tallystick/testkit'
import { NEVER } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { checkedRun, ofType, stage, typesOf } from './stage.ts'

/** A run that waits for a person to decide about a payment. */
async function waiting(ledger: Ledger = memoryLedger()) {
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Done.' }]
  const set = stage({ steps, tools: [pay], ledger })
  const run = set.start()
  const rest = await set.waitUntilSettled(run.result)
  const toolCallId = rest.pendingApprovals[0]!.toolCallId
  const put = (key: string, command: unknown): Promise<boolean> =>
    set.ledger.put(run.id, {
      key,
      at: set.clock.now(),
      command: command as OutsideCommand,
    } satisfies InboxEntry)
  const resume = () => set.waitUntilSettled(set.runtime.resume(run.id).result)
  return { ...set, run, pay, toolCallId, put, resume }
}

describe('the inbox', () => {
  const message = { role: 'user', parts: [{ type: 'text', text: 'Hurry.' }] }
  const malformed: Readonly<Record<string, unknown>> = {
    'of an unknown type': { type: 'dream' },
    'that is none': 'approve',
    'that approves in the name of no person': { type: 'approve', toolCallId: 'ID' },
    'that edits the input to no object': { type: 'approve', toolCallId: 'ID', by: 'ada', input: [1] },
    'that denies without a reason': { type: 'deny', toolCallId: 'ID', by: 'ada' },
    'that raises an unknown limit': { type: 'raise_limit', limit: 'sky', max: 1, by: 'ada' },
    'that raises a limit to nothing': { type: 'raise_limit', limit: 'maxTurns', max: null, by: 'ada' },
    'that steers without a message': { type: 'steer', receipt: 'r' },
    'that only a runtime may send': { type: 'resume', why: 'crash', definition: {} },
    'that names what every object has': { type: 'constructor' },
  }

  it.each(Object.entries(malformed))(
    'a command %s changes nothing, and the run can still be driven',
    async (_name, command) => {
      const { run, put, resume, ledger, toolCallId, eventsOf, pay } = await waiting()
      const named = JSON.parse(
        JSON.stringify(command).replaceAll('"ID"', JSON.stringify(toolCallId)),
      ) as unknown
      await put('wrong', named)
      expect(await resume()).toMatchObject({ status: 'suspended', pendingApprovals: [{ name: 'pay' }] })
      await put('right', { type: 'approve', toolCallId, by: 'ada' })
      expect(await resume()).toMatchObject({ status: 'done', reason: 'answered', text: 'Done.' })
      expect(pay.runs).toHaveLength(1)
      expect(await ledger.inbox(run.id)).toEqual([])
      expect(ofType(await eventsOf(run), 'approval_decided')).toHaveLength(1)
    },
  )

  it('answers a malformed command of this process with a refusal', async () => {
    const { run, toolCallId, waitUntilSettled: settle } = await waiting()
    const acknowledgement = await settle(run.approve(toolCallId, { by: undefined as never }))
    expect(acknowledgement).toMatchObject({ accepted: false, code: 'malformed' })
    expect(acknowledgement).toHaveProperty('message', expect.stringContaining('approve: by is missing'))
  })

  it('takes a command once that is sent twice under a key at the same moment, and answers its first sender', async () => {
    const { run, runtime, toolCallId, pay, waitUntilSettled: settle } = await waiting()
    const send = () => runtime.send(run.id, { type: 'approve', toolCallId, by: 'ada' }, { key: 'k' })
    const [first, second] = await settle(Promise.allSettled([send(), send()]))
    expect(first).toEqual({ status: 'fulfilled', value: { accepted: true } })
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'ledger_conflict', kind: 'unique' } })
    expect(await settle(run.result)).toMatchObject({ reason: 'answered' })
    expect(pay.runs).toHaveLength(1)
  })

  it('is read for a command of this process, though the ledger gives no hint of it', async () => {
    const slow = testTool({ name: 'slow', run: () => new Promise(() => {}) })
    const ledger = { ...memoryLedger(), changes: () => NEVER }
    const set = stage({ ledger, tools: [slow], steps: [{ toolCalls: [{ name: 'slow', input: {} }] }] })
    const run = set.start()
    while (slow.runs.length === 0) await Promise.resolve()
    expect(await set.waitUntilSettled(run.cancel())).toEqual({ accepted: true })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'cancelled' })
  })

  it('is read before the run ends: what came in at the last moment is obeyed, or refused, and no report is lost', async () => {
    for (const command of [{ type: 'steer', message, receipt: 'r1' }, { type: 'dream' }]) {
      const ledger = memoryLedger()
      const consumed: string[] = []
      let isPut = false
      const append: typeof ledger.append = async (runId, expected, events, options) => {
        if (!isPut && events.some(({ type }) => type === 'run_finished')) {
          isPut = true
          await ledger.put(runId, { key: 'late', command: command as never, at: 0 })
        }
        const head = await ledger.append(runId, expected, events, options)
        consumed.push(...(options.consumedInboxKeys ?? []))
        return head
      }
      const set = stage({ ledger: { ...ledger, append }, steps: [{ text: 'One.' }, { text: 'Two.' }] })
      const { text, runId, reason } = await set.play()
      expect([reason, text]).toEqual(['answered', command.type === 'steer' ? 'Two.' : 'One.'])
      expect([consumed, await ledger.inbox(runId)]).toEqual([['late'], []])
      const received = ofType(checkedRun(await set.eventsOf(runId)), 'input_received')
      expect(received).toHaveLength(command.type === 'steer' ? 2 : 1)
    }
  })

  it('loses each entry once, by the append that records what followed, or by one of its own', async () => {
    const ledger = memoryLedger()
    const consumed: string[] = []
    const append: typeof ledger.append = async (...given) => {
      consumed.push(...(given[3].consumedInboxKeys ?? []))
      return await ledger.append(...given)
    }
    const { put, resume, toolCallId, run } = await waiting({ ...ledger, append })
    await put('wrong', { type: 'dream' })
    expect(await resume()).toMatchObject({ status: 'suspended' })
    expect(consumed).toEqual(['wrong'])
    const resumed = (await Array.fromAsync(ledger.read(run.id))).at(-1)
    expect(resumed).toMatchObject({ type: 'run_resumed' })
    await put('as wrong', { type: 'dream' })
    await put('other', { type: 'deny', toolCallId: `${toolCallId}9`, by: 'ada', reason: 'no' })
    await put('right', { type: 'approve', toolCallId, by: 'ada' })
    expect(await resume()).toMatchObject({ status: 'done', reason: 'answered' })
    expect(consumed.toSorted()).toEqual(['as wrong', 'other', 'right', 'wrong'])
  })

  it('is empty where a run stops, though the last look found what no process can carry out', async () => {
    const ledger: Ledger = { ...memoryLedger(), changes: () => NEVER }
    const command = { type: 'dream' } as unknown as OutsideCommand
    const look = testTool({
      name: 'look',
      run: async ({ runId }) => {
        await ledger.put(runId, { key: 'wrong', command, at: 0 })
        return 'seen'
      },
    })
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const steps = ['look', 'pay'].map((name) => ({ toolCalls: [{ name, input: {} }] }))
    const set = stage({ steps, tools: [look, pay], ledger })
    const { runId, status } = await set.play()
    expect([status, await ledger.inbox(runId)]).toEqual(['suspended', []])
  })

  it('is waited for by a run that stops while a command is on its way', async () => {
    const ledger = memoryLedger()
    const gate = Promise.withResolvers<void>()
    const put: typeof ledger.put = async (...given) => {
      await gate.promise
      return await ledger.put(...given)
    }
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Done.' }]
    const set = stage({ ledger: { ...ledger, put }, steps, tools: [pay] })
    const run = set.start()
    const { promise: sent, resolve: send } = Promise.withResolvers<Promise<unknown>[]>()
    run.events$.subscribe(({ type }) => {
      if (type === 'tool_requests_collected') send([run.steer('Hurry.')])
    })
    const steered = await sent
    for (let turn = 0; turn < 500; turn++) await Promise.resolve()
    gate.resolve()
    expect(await set.waitUntilSettled(Promise.all(steered))).toEqual([{ accepted: true }])
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ status: 'suspended' })
    expect((await ledger.head(run.id))?.epoch).toBe(1)
  })

  it('takes one id for one input, however often it is put', async () => {
    const { put, resume, eventsOf, run, toolCallId } = await waiting()
    await put('first', { type: 'steer', message, receipt: 'r1' })
    await put('second', { type: 'steer', message, receipt: 'r1' })
    await put('third', { type: 'approve', toolCallId, by: 'ada' })
    expect(await resume()).toMatchObject({ status: 'done', reason: 'answered' })
    const events = await eventsOf(run)
    expect(ofType(events, 'input_received').filter(({ receipt }) => receipt === 'r1')).toHaveLength(1)
    expect(ofType(events, 'input_settled')).toMatchObject([{ receipt: 'r1', delivered: true }])
  })

  it('decides commands in the order in which they were put, each once', async () => {
    const { put, resume, eventsOf, run, toolCallId, ledger } = await waiting()
    await put('1', { type: 'deny', toolCallId, by: 'ada', reason: 'too much' })
    await put('2', { type: 'approve', toolCallId, by: 'bob' })
    expect(await put('1', { type: 'approve', toolCallId, by: 'eve' })).toBe(false)
    expect(await resume()).toMatchObject({ status: 'done' })
    const events = await eventsOf(run)
    expect(ofType(events, 'approval_decided')).toMatchObject([
      { approved: false, by: 'ada', reason: 'too much' },
    ])
    expect(ofType(events, 'tool_result')).toMatchObject([{ outcome: 'denied' }])
    expect(await ledger.inbox(run.id)).toEqual([])
    expect(typesOf(events).filter((type) => type === 'tool_started')).toEqual([])
  })
})

it('the inbox of a run in memory is read as fast after many commands as before', async () => {
  const ledger = memoryLedger()
  const runId = sampleRunId(1)
  const append = (seq: number, type: string, consumedInboxKeys: readonly string[] = []) => {
    const event = { runId, seq, epoch: 1, turn: 0, at: 1, v: 1, type } as RuntimeEvent
    const head = { expectedSeq: seq - 1, epoch: 1 }
    return ledger.append(runId, head, [event], { durability: 'lazy', consumedInboxKeys })
  }
  const put = (key: string) => ledger.put(runId, { key, command: { type: 'cancel' }, at: 1 })
  await append(1, 'run_started')
  const taken = Array.from({ length: 20_000 }, (_, index) => `taken ${index}`)
  for (const key of taken) await put(key)
  await append(2, 'assistant_started', taken)
  await put('waits')
  const begun = process.cpuUsage()
  for (let times = 0; times < 2_000; times++) await ledger.inbox(runId)
  // A look at each command that was taken would take some seconds.
  expect(process.cpuUsage(begun).user).toBeLessThan(1_000_000)
  expect((await ledger.inbox(runId)).map(({ key }) => key)).toEqual(['waits'])
  expect(await put('taken 0')).toBe(false)
})
