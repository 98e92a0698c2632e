import { describe, expect, it, onTestFinished } from 'vitest'
import { type Agent, createRuntime, defineAgent, memoryLedger, type RunId } from '@tallystick/core'
import { startWorker } from '@tallystick/engines'
import { pollingEngine } from '@tallystick/engines/polling'
import type { RunWake } from '@tallystick/server'
import { checkLaws, scriptedModel } from '@tallystick/testkit'
import { documentAt, exampleOf, operationsOf } from './kit/described.ts'
import { answerOf, framesOf, openOffice, payingAgent, tellingAgent, type Office } from './kit/office.ts'

/** A web process that drives nothing, and a worker in another runtime on its ledger. */
async function openThin(
  agents: readonly Agent[],
  { isAway = false }: { readonly isAway?: boolean } = {},
): Promise<Office & { readonly woken: string[]; readonly wakes: RunWake[] }> {
  const ledger = memoryLedger()
  const engine = pollingEngine({ ledger, everyMs: 20 })
  const wakes: RunWake[] = []
  const worker = await startWorker({ runtime: createRuntime({ ledger, agents }), engine })
  const office = await openOffice({
    ledger,
    // Its own model has nothing to say.
    agents: agents.map(({ name, instructions, tools }) =>
      defineAgent({ name, instructions, tools, model: scriptedModel([]) }),
    ),
    drives: false,
    engine: {
      wake: async (wake) => {
        wakes.push(wake)
        if (isAway) throw new Error('The engine is away.')
        await engine.wake(wake)
      },
    },
  })
  onTestFinished(() => worker.stop(0))
  return {
    ...office,
    wakes,
    get woken() {
      return wakes.map(({ runId }) => runId)
    },
  }
}

interface Waiting {
  readonly status: string
  readonly pendingApprovals: readonly { readonly toolCallId: string }[]
}

async function resultOf(office: Office, runId: string): Promise<Waiting> {
  const response = await office.send(`/runs/${runId}/result?waitMs=20000`)
  return (await response.json()) as Waiting
}

async function checkRuns(office: Office): Promise<void> {
  for await (const { runId } of office.ledger.runs()) {
    expect(checkLaws(await Array.fromAsync(office.ledger.read(runId)))).toEqual([])
  }
  expect(office.reported).toEqual([])
}

const starting = operationsOf(await documentAt('')).filter(({ operation }) =>
  operation.parameters.some(({ name }) => name === 'traceparent'),
)

describe('a server that drives nothing', () => {
  it('starts runs, follows them and decides about them through workers', async () => {
    const office = await openThin([payingAgent('cashier')])
    const runId = await office.start('boss')
    const following = office.send(`/runs/${runId}/events`, 'boss', undefined, { accept: 'text/event-stream' })
    const { status, pendingApprovals } = await resultOf(office, runId)
    expect(status).toBe('suspended')
    const call = { toolCallId: pendingApprovals[0]!.toolCallId }
    const key = { 'idempotency-key': 'click' }
    const approve = (headers = key): Promise<Response> =>
      office.send(`/runs/${runId}/approve`, 'boss', call, headers)
    expect(await answerOf(await approve())).toEqual({ status: 200, accepted: true })
    const types: string[] = []
    for await (const { data } of framesOf(await following))
      types.push((JSON.parse(data) as { type: string }).type)
    expect(types[0]).toBe('run_started')
    expect(types.at(-1)).toBe('run_finished')
    expect(await resultOf(office, runId)).toMatchObject({ status: 'done' })
    expect(await answerOf(await approve())).toEqual({ status: 200, accepted: true })
    const another = await approve({ 'idempotency-key': 'click-2' })
    expect(await answerOf(another)).toMatchObject({ status: 409 })
    expect(new Set(office.woken)).toEqual(new Set([runId]))
    await checkRuns(office)
  })

  it('cancels a run that waits, and refuses a command that the run does not allow', async () => {
    const office = await openThin([payingAgent('cashier')])
    const runId = await office.start('boss')
    const { pendingApprovals } = await resultOf(office, runId)
    expect(await answerOf(await office.send(`/runs/${runId}/cancel`, 'boss', {}))).toMatchObject({
      status: 200,
    })
    const following = await office.send(`/runs/${runId}/events`, 'boss', undefined, {
      accept: 'text/event-stream',
    })
    await following.text()
    expect(await resultOf(office, runId)).toMatchObject({ status: 'done', reason: 'cancelled' })
    const late = await office.send(`/runs/${runId}/approve`, 'boss', pendingApprovals[0])
    expect(late.status).toBeGreaterThanOrEqual(400)
    await checkRuns(office)
  })

  it('begins one run under a key', async () => {
    const office = await openThin([tellingAgent('cashier', 'Paid.')])
    const body = { agent: 'cashier', input: 'Pay.' }
    const start = (): Promise<Response> =>
      office.send('/runs', 'boss', body, { 'idempotency-key': 'order-7' })
    const first = await answerOf(await start())
    expect(first).toMatchObject({ status: 201 })
    await resultOf(office, String(first['runId']))
    expect(await answerOf(await start())).toEqual(first)
    await checkRuns(office)
  })

  it('begins a run of a session after the one before, where the request waits for it', async () => {
    const office = await openThin([payingAgent('cashier')])
    const session = { sessionId: 'chat' }
    const first = await office.start('boss', session)
    const { pendingApprovals } = await resultOf(office, first)
    const body = { agent: 'cashier', input: 'Pay again.', ...session }
    expect(await answerOf(await office.send('/runs', 'boss', body))).toMatchObject({ status: 409 })
    const second = office.send('/runs', 'boss', { ...body, whenBusy: 'wait' })
    await office.send(`/runs/${first}/approve`, 'boss', { toolCallId: pendingApprovals[0]!.toolCallId })
    expect(await answerOf(await second)).toMatchObject({ status: 201 })
    await checkRuns(office)
  })

  it('takes up an interrupted run through workers, and says what it cannot do', async () => {
    const office = await openThin([payingAgent('cashier')])
    const runId = await office.start('boss')
    await resultOf(office, runId)
    expect(await answerOf(await office.send(`/runs/${runId}/resume`, 'boss', {}))).toMatchObject({
      status: 202,
    })
    const takeOver = await office.send(`/runs/${runId}/resume`, 'boss', { takeOver: true })
    expect(await answerOf(takeOver)).toMatchObject({ status: 409, code: 'not_driven_here' })
    const fork = await office.send(`/runs/${runId}/fork`, 'boss', { atSeq: 2 })
    expect(await answerOf(fork)).toMatchObject({ status: 409, code: 'not_driven_here' })
  })

  it.each(starting)('answers by what a worker does: $path', async ({ path, operation }) => {
    const office = await openThin([tellingAgent('cashier', 'It is paid.', 'It is paid.')])
    const response = await office.send(path.replace('{agent}', 'cashier'), 'boss', exampleOf(operation))
    const text = await response.text()
    expect({ text, ok: response.ok }).toMatchObject({ ok: true })
    const [run] = await Array.fromAsync(office.ledger.runs())
    expect(await resultOf(office, run!.runId)).toMatchObject({ status: 'done', text: 'It is paid.' })
    await checkRuns(office)
  })

  it('gives a message to the run of its conversation that waits', async () => {
    const office = await openThin([payingAgent('cashier')])
    const say = (id: string, text: string): Promise<Response> =>
      office.send('/chat/cashier', 'boss', {
        id: 'chat-1',
        messages: [{ id, role: 'user', parts: [{ type: 'text', text }] }],
      })
    await (await say('m1', 'Pay the bill.')).text()
    const [run] = await Array.fromAsync(office.ledger.runs())
    const { pendingApprovals } = await resultOf(office, run!.runId)
    const joining = say('m2', 'In euros.')
    await office.send(`/runs/${run!.runId}/approve`, 'boss', { toolCallId: pendingApprovals[0]!.toolCallId })
    expect((await joining).ok).toBe(true)
    expect(await Array.fromAsync(office.ledger.runs({}))).toHaveLength(1)
    await checkRuns(office)
  })

  it('tells the engine of the session and the subject of a run', async () => {
    const office = await openThin([payingAgent('cashier')])
    const about = { sessionId: 'chat', subject: 'acme' }
    const runId = await office.start('boss', about)
    await resultOf(office, runId)
    await office.send(`/runs/${runId}/cancel`, 'boss', {})
    const wake = { runId, key: 'chat', tenant: 'acme' }
    expect(office.wakes).toEqual([wake, wake])
  })

  it('answers for what is on record, also while the engine is away', async () => {
    const office = await openThin([payingAgent('cashier')], { isAway: true })
    const runId = await office.start('boss')
    const { pendingApprovals } = await resultOf(office, runId)
    const call = { toolCallId: pendingApprovals[0]!.toolCallId }
    const approved = await office.send(`/runs/${runId}/approve`, 'boss', call)
    expect(await answerOf(approved)).toEqual({ status: 200, accepted: true })
    expect(await resultOf(office, runId)).toMatchObject({ status: 'done' })
    expect(office.reported.map(String)).toEqual(['Error: The engine is away.', 'Error: The engine is away.'])
  })

  it('refuses options that it cannot keep', async () => {
    await expect(openOffice({ drives: false, liveText: true })).rejects.toThrow(/liveText/)
    await expect(openOffice({ engine: { wake: () => Promise.resolve() } })).rejects.toThrow(/drives: false/)
  })
})

describe('a request that drives a run', () => {
  const runId = '01a20ad2-04d4-72fd-99e7-7861fc19641d' as RunId

  it('answers how it rests, and starts a run that is not on record', async () => {
    const office = await openOffice({ agents: [payingAgent('cashier')] })
    const start = { agent: 'cashier', input: 'Pay the bill.', options: { limits: { maxApprovalMs: 60_000 } } }
    const drive = async (body: object): Promise<unknown> =>
      (await office.send('/drive', 'driver', body)).json()
    const rest = await drive({ runId, start })
    expect(rest).toMatchObject({
      status: 'waiting',
      runId,
      pending: false,
      wakeAt: expect.any(Number) as number,
    })
    expect(await resultOf(office, runId)).toMatchObject({ wakeAt: (rest as { wakeAt: number }).wakeAt })
    expect(await drive({ runId, start, maxMs: 1_000 })).toMatchObject({ status: 'waiting' })
    const { pendingApprovals } = await resultOf(office, runId)
    const command = {
      type: 'approve',
      toolCallId: pendingApprovals[0]!.toolCallId as never,
      by: 'ada',
    } as const
    await office.runtime.post(runId, command, { key: 'k' })
    expect(await drive({ runId })).toMatchObject({ status: 'done' })
    await checkRuns(office)
  })

  it('needs a permission that names it, and a run', async () => {
    const office = await openOffice({ agents: [payingAgent('cashier')] })
    expect(await answerOf(await office.send('/drive', 'boss', { runId }))).toMatchObject({
      code: 'not_permitted',
    })
    expect(await answerOf(await office.send('/drive', 'driver', { runId }))).toMatchObject({
      code: 'run_not_found',
    })
    const nobody = { runId, start: { agent: 'nobody', input: 'Hi.' } }
    expect((await office.send('/drive', 'driver', nobody)).status).toBeGreaterThanOrEqual(400)
  })
})
