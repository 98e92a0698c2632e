import { describe, expect, it } from 'vitest'
import { defineAgent, type Ledger, memoryLedger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { redact } from '@tallystick/ledger'
import { temporaryLedger } from './kit/temporary-ledger.ts'
import { answerOf, framesOf, type Office, openOffice, payingAgent, tellingAgent } from './kit/office.ts'

interface RunAnswer {
  readonly status: string
  readonly text: string
  readonly seq: number
  readonly pendingApprovals: readonly {
    toolCallId: string
    attempt: number
    inputDigest: string
    input: unknown
  }[]
}

describe('a run over HTTP', () => {
  it('is started, followed, approved and read to its end', async () => {
    const office = await openOffice()
    const started = await office.send('/runs', 'boss', { agent: 'office', input: 'Pay the bill.' })
    expect(started.status).toBe(201)
    const { runId } = (await started.json()) as { runId: string }
    expect(started.headers.get('location')).toBe(`/runs/${runId}`)

    const waiting = await office.send(`/runs/${runId}/result?waitMs=20000`)
    const { status, pendingApprovals } = (await waiting.json()) as RunAnswer
    expect(status).toBe('suspended')
    const [{ toolCallId, attempt, inputDigest, input }] = pendingApprovals as [
      RunAnswer['pendingApprovals'][0],
    ]
    expect(input).toEqual({ usd: 5 })
    const approved = await office.send(`/runs/${runId}/approve`, 'boss', {
      toolCallId,
      attempt,
      inputDigest,
      input: { usd: 4 },
    })
    expect(await approved.json()).toEqual({ accepted: true })

    const ended = await answerOf(await office.send(`/runs/${runId}/result?waitMs=20000`))
    expect(ended).toMatchObject({ reason: 'answered', text: 'Payment: 4 USD paid' })
    // What grows with the conversation is the transcript's.
    const view = await answerOf(await office.send(`/runs/${runId}`))
    expect([view, ended]).toEqual([ended, view])
    expect(Object.keys(view)).not.toContain('messages')
    const { messages } = (await (await office.send(`/runs/${runId}/transcript`)).json()) as {
      messages: unknown[]
    }
    expect(messages).toHaveLength(4)
    const decided = (await recorded(office.send(`/runs/${runId}/events`))).find(
      ({ type }) => type === 'approval_decided',
    )
    expect(decided).toMatchObject({ by: 'boss', via: 'http', approved: true })
    expect(office.reported).toEqual([])
  })

  it('is seen as it was at any event', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'Good.')] })
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    expect(await answerOf(await office.send(`/runs/${runId}?at=1`))).toMatchObject({
      status: 200,
      seq: 1,
      text: '',
    })
    const seq = Number((await answerOf(await office.send(`/runs/${runId}`)))['seq'])
    for (let at = 1; at <= seq; at++) {
      const body = await (await office.send(`/runs/${runId}?at=${at}`)).json()
      expect([at, body]).toMatchObject([at, { status: at === seq ? 'done' : 'under_way' }])
    }
    expect(await answerOf(await office.send(`/runs/${runId}?at=999`))).toMatchObject({
      code: 'run_not_found',
    })
  })

  it('is listed with filters, page by page', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.', 'Three.')] })
    const runIds: string[] = []
    for (let count = 0; count < 3; count++) {
      runIds.unshift(await office.start('boss', { sessionId: 's1' }))
      await office.send(`/runs/${runIds[0]}/result?waitMs=20000`)
    }
    const first = await answerOf(await office.send('/runs?limit=2&sessionId=s1&status=done'))
    expect(first['runs']).toMatchObject([{ runId: runIds[0] }, { runId: runIds[1] }])
    const second = await answerOf(
      await office.send(`/runs?limit=2&sessionId=s1&before=${String(first['before'])}`),
    )
    expect(second['runs']).toMatchObject([{ runId: runIds[2], sessionPlace: 1 }])
    expect((await answerOf(await office.send('/runs?agent=other')))['runs']).toEqual([])
    expect(await answerOf(await office.send('/runs?status=sleeping'))).toMatchObject({
      status: 400,
      code: 'malformed',
    })
  })

  it('is denied, and the model reads why', async () => {
    const office = await openOffice()
    const runId = await office.start('boss')
    const { pendingApprovals } = (await (
      await office.send(`/runs/${runId}/result?waitMs=20000`)
    ).json()) as RunAnswer
    const toolCallId = pendingApprovals[0]?.toolCallId
    await office.send(`/runs/${runId}/deny`, 'boss', { toolCallId, reason: 'too dear' })
    const { text } = (await (await office.send(`/runs/${runId}/result?waitMs=20000`)).json()) as RunAnswer
    expect(text).toContain('too dear')
    const again = await office.send(`/runs/${runId}/deny`, 'boss', { toolCallId, reason: 'too dear' })
    expect(again.headers.get('content-type')).toBe('application/problem+json')
    expect(await answerOf(again)).toMatchObject({ status: 409, code: 'not_awaiting_approval' })
  })

  it('is cancelled by the principal, steered, and not raised above what it has', async () => {
    const office = await openOffice()
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    expect((await office.send(`/runs/${runId}/steer`, 'boss', { input: 'Hurry.' })).status).toBe(200)
    const raise = await office.send(`/runs/${runId}/raise`, 'boss', { limit: 'maxTurns', max: 1 })
    expect(raise.status).toBe(409)
    await office.send(`/runs/${runId}/cancel`, 'boss', { reason: 'closed' })
    const ended = await office.send(`/runs/${runId}/result?waitMs=20000`)
    expect(await ended.json()).toMatchObject({ status: 'done', reason: 'cancelled' })
    const cancel = (await recorded(office.send(`/runs/${runId}/events`))).find(
      ({ type }) => type === 'cancel_requested',
    )
    expect(cancel).toMatchObject({ by: 'boss', reason: 'closed' })
  })

  it('is forked after an event, with another input', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.')] })
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const events = await recorded(office.send(`/runs/${runId}/events`))
    const atSeq = events.find(({ type }) => type === 'input_received')?.seq
    const forked = await office.send(`/runs/${runId}/fork`, 'boss', { atSeq, input: 'Another bill.' })
    expect(forked.status).toBe(201)
    const { runId: forkId } = (await forked.json()) as { runId: string }
    const result = await office.send(`/runs/${forkId}/result?waitMs=20000`)
    expect(await result.json()).toMatchObject({
      status: 'done',
      text: 'Two.',
      parent: { runId, relation: 'fork' },
    })
    const edited = (await recorded(office.send(`/runs/${forkId}/events`))).find(
      ({ type }) => type === 'history_edited',
    )
    expect(edited).toMatchObject({ by: 'boss' })
  })

  it('takes a decision of a process that does not know its agent', async () => {
    const office = await openOffice()
    const runId = await office.start('boss')
    const { pendingApprovals } = await answerOf(await office.send(`/runs/${runId}/result?waitMs=20000`))
    const [{ toolCallId }] = pendingApprovals as [{ toolCallId: string }]
    const stranger = await openOffice({ ledger: office.ledger, agents: [tellingAgent('teller', 'One.')] })
    const denied = await stranger.send(`/runs/${runId}/deny`, 'boss', { toolCallId, reason: 'Too dear.' })
    expect([denied.status, await denied.json()]).toEqual([200, { accepted: true }])
    const steered = await stranger.send(`/runs/${runId}/steer`, 'boss', { input: 'And coffee.' })
    expect(steered.status).toBe(200)
    expect((await office.ledger.inbox(runId as RunId)).map(({ command }) => command.type)).toEqual([
      'deny',
      'steer',
    ])
    const again = await stranger.send(`/runs/${runId}/deny`, 'boss', { toolCallId: 'none', reason: 'No.' })
    expect(again.status).toBe(409)
    await office.runtime.resume(runId).result
    const events = await recorded(office.send(`/runs/${runId}/events`))
    const taken = events
      .filter(({ type }) => type === 'approval_decided' || type === 'input_received')
      .slice(1)
    expect(taken).toMatchObject([{ approved: false, reason: 'Too dear.' }, { delivery: 'steer' }])
  })

  it('is forked with another result, other instructions and another model', async () => {
    const cheap = defineAgent({
      name: 'cheap',
      instructions: 'Answer.',
      model: scriptedModel([{ text: 'Unused.' }], 'small'),
    })
    const office = await openOffice({ agents: [payingAgent(), cheap] })
    const runId = await office.start('boss')
    const { pendingApprovals } = await answerOf(await office.send(`/runs/${runId}/result?waitMs=20000`))
    const [{ toolCallId }] = pendingApprovals as [{ toolCallId: string }]
    await office.send(`/runs/${runId}/approve`, 'boss', { toolCallId, reason: 'small enough' })
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const events = await recorded(office.send(`/runs/${runId}/events`))
    const decided = events.find(({ type }) => type === 'approval_decided')
    expect(decided).toMatchObject({ approved: true, reason: 'small enough' })
    const atSeq = events.find(({ type }) => type === 'tool_started')?.seq
    const body = {
      atSeq,
      results: [{ toolCallId, content: 'The account is empty.', outcome: 'failed' }],
      instructions: 'Be sorry.',
      writes: 'stub',
      reason: 'what if it fails',
    }
    const forked = await office.send(`/runs/${runId}/fork`, 'boss', body)
    const { runId: forkId } = (await forked.json()) as { runId: string }
    await office.send(`/runs/${forkId}/result?waitMs=20000`)
    const own = await recorded(office.send(`/runs/${forkId}/events`))
    expect(own.find(({ type }) => type === 'tool_result')).toMatchObject({ outcome: 'failed' })
    expect(JSON.stringify(own)).toContain('Be sorry.')

    const unknown = await office.send(`/runs/${runId}/fork`, 'boss', { atSeq, model: 'huge' })
    expect(unknown.status).toBe(400)
    expect(((await unknown.json()) as { detail: string }).detail).toContain('They have: scripted-1, small.')
    const smaller = await office.send(`/runs/${runId}/fork`, 'boss', { atSeq: 2, model: 'small' })
    expect(smaller.status).toBe(201)
    const { runId: smallId } = (await smaller.json()) as { runId: string }
    await office.send(`/runs/${smallId}/result?waitMs=20000`)
    const called = (await recorded(office.send(`/runs/${smallId}/events`))).find(
      ({ type }) => type === 'model_call_started',
    )
    expect(called).toMatchObject({ model: { modelId: 'small' } })
  })

  it('is refused with the code of the error', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.')] })
    const cases: readonly (readonly [body: object, status: number, code: string])[] = [
      [{ agent: 'nobody', input: 'Hi.' }, 404, 'agent_not_found'],
      [{ agent: 'teller' }, 400, 'malformed'],
      [{ agent: 'teller', input: '' }, 400, 'malformed'],
      [{ agent: 'teller', input: [{ type: 'text' }] }, 400, 'malformed'],
      [{ agent: 'teller', input: 'Hi.', session: 's1' }, 400, 'malformed'],
      [{ agent: 'teller', input: 'Hi.', limits: { maxTurns: 1e9 } }, 403, 'limit_too_wide'],
      [{ agent: 'teller', input: 'Hi.', from: { runId: 'x' } }, 404, 'run_not_found'],
    ]
    for (const [body, status, code] of cases) {
      const response = await office.send('/runs', 'boss', body)
      expect({ body, ...(await answerOf(response)) }).toMatchObject({ body, status, code })
    }
    expect(await answerOf(await office.send('/nothing'))).toMatchObject({ status: 404, code: 'not_found' })
    expect((await office.send('/agents')).headers.get('content-type')).toBe('application/json')
  })

  it('keeps a session busy, and says which run does', async () => {
    const office = await openOffice()
    const runId = await office.start('boss', { sessionId: 's1' })
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const second = await office.send('/runs', 'boss', { agent: 'office', input: 'More.', sessionId: 's1' })
    expect(await answerOf(second)).toMatchObject({
      status: 409,
      code: 'ledger_conflict',
      kind: 'session',
      busy: { runId, status: 'suspended' },
    })
  })
})

describe('the agents of a server', () => {
  it('are listed without their instructions', async () => {
    const office = await openOffice()
    const response = await office.send('/agents')
    const text = await response.text()
    expect(JSON.parse(text)).toMatchObject({
      agents: [{ name: 'office', description: 'Pays bills.', tools: [{ name: 'pay', effect: 'write' }] }],
    })
    expect(text).not.toContain('instructions')
    expect(await answerOf(await office.send('/agents/other'))).toMatchObject({
      status: 404,
      code: 'agent_not_found',
    })
  })
})

describe('a command that is sent twice under one key', () => {
  it('is one command', async () => {
    const office = await openOffice()
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const key = { 'idempotency-key': 'k1' }
    expect((await office.send(`/runs/${runId}/steer`, 'boss', { input: 'Hurry.' }, key)).status).toBe(200)
    const again = await office.send(`/runs/${runId}/steer`, 'boss', { input: 'Hurry.' }, key)
    expect(await answerOf(again)).toMatchObject({ status: 200, accepted: true })
    const other = await office.send(`/runs/${runId}/steer`, 'boss', { input: 'Wait.' }, key)
    expect(await answerOf(other)).toMatchObject({ status: 409, code: 'ledger_conflict', kind: 'unique' })
    const events = await recorded(office.send(`/runs/${runId}/events`))
    expect(events.filter(({ type }) => type === 'input_received')).toHaveLength(2)
    await office.send(`/runs/${runId}/cancel`, 'boss', {})
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const late = await office.send(`/runs/${runId}/steer`, 'boss', { input: 'Hurry.' }, key)
    expect(await answerOf(late)).toMatchObject({ status: 200, accepted: true })
  })

  it('stays refused, if it was', async () => {
    const office = await openOffice()
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const toolCallId = `call_${runId.slice(4).replaceAll('-', '')}_1_1_0`
    for (const refused of [
      { status: 409, code: 'not_deferred' },
      { status: 409, code: 'ledger_conflict', kind: 'unique' },
    ]) {
      const body = { toolCallId, result: 'paid' }
      const sent = office.send(`/runs/${runId}/settle`, 'boss', body, { 'idempotency-key': 'k2' })
      expect(await answerOf(await sent)).toMatchObject(refused)
    }
  })
})

describe('a command that comes again under its key', () => {
  const key = { 'idempotency-key': 'k1' }
  const taken = { status: 200, accepted: true }
  const conflict = { status: 409, code: 'ledger_conflict', kind: 'unique' }
  const png =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

  async function waiting(options: Parameters<typeof openOffice>[0] = {}) {
    const office = await openOffice(options)
    const runId = await office.start('boss')
    const result = await answerOf(await office.send(`/runs/${runId}/result?waitMs=20000`))
    const [asked] = result['pendingApprovals'] as RunAnswer['pendingApprovals']
    const { toolCallId } = asked!
    const send = async (verb: string, body: object, as = 'boss') =>
      await answerOf(await office.send(`/runs/${runId}/${verb}`, as, body, key))
    return { office, runId, toolCallId, send }
  }

  it('is another one if it says less than the first, or more', async () => {
    const { send, toolCallId } = await waiting({ ledger: temporaryLedger() })
    const changed = { toolCallId, input: { usd: 4 }, reason: 'Less.' }
    expect(await send('approve', changed)).toEqual(taken)
    expect(await send('approve', changed)).toEqual(taken)
    expect(await send('approve', { toolCallId, reason: 'Less.' })).toMatchObject({ status: 409 })
    expect(await send('approve', { toolCallId, input: { usd: 4 } })).toMatchObject({ status: 409 })
    expect(await send('approve', { ...changed, input: { usd: 3 } })).toMatchObject({ status: 409 })
    const standing = { for: 'session', expiresInMs: 1_000 }
    expect(await send('approve', { ...changed, standing })).toMatchObject({ status: 409 })
    expect(await send('deny', { toolCallId, reason: 'Less.' })).toMatchObject({ status: 409 })
  })

  it('is the same with the input that was asked about, and with a media type that the record corrects', async () => {
    const { send, toolCallId } = await waiting({ ledger: temporaryLedger() })
    expect(await send('approve', { toolCallId, input: { usd: 5 } })).toEqual(taken)
    expect(await send('approve', { toolCallId, input: { usd: 5 } })).toEqual(taken)
    const other = await waiting()
    const input = [{ type: 'image', mediaType: 'image/jpeg', data: png }]
    expect(await other.send('steer', { input })).toEqual(taken)
    expect(await other.send('steer', { input })).toEqual(taken)
  })

  it('is the same after its content was removed, and not that of another caller', async () => {
    const { office, runId, send, toolCallId } = await waiting({ ledger: temporaryLedger() })
    expect(await send('approve', { toolCallId, input: { usd: 4 }, reason: 'Less.' })).toEqual(taken)
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    await redact(office.ledger, runId as RunId, 'all', { by: 'ops', reason: 'asked to' })
    expect(await send('approve', { toolCallId, input: { usd: 4 }, reason: 'Less.' })).toEqual(taken)
    expect(await send('deny', { toolCallId, reason: 'No.' })).toMatchObject({ status: 409 })
    expect(await send('approve', { toolCallId, input: { usd: 4 } }, 'ada')).toMatchObject({ status: 404 })
  })

  it('is decided once, and answered when it is, where the process that put it has died', async () => {
    const ledger = temporaryLedger()
    const { runId, toolCallId, send } = await waiting({ ledger })
    const dying = await openOffice({ ledger, drives: false, engine: { wake: async () => {} } })
    const body = { toolCallId, input: { usd: 4 } }
    const put = await dying.send(`/runs/${runId}/approve`, 'boss', body, key)
    expect(await answerOf(put)).toEqual(taken)
    expect(await ledger.inbox(runId as RunId)).toHaveLength(1)
    expect(await Promise.all([send('approve', body), send('approve', body)])).toEqual([taken, taken])
    const events = await Array.fromAsync(ledger.read(runId as RunId))
    expect(events.filter(({ type }) => type === 'approval_decided')).toHaveLength(1)
  })

  it('is refused where another one waits under the key, and that one stays', async () => {
    const ledger = temporaryLedger()
    const { runId, toolCallId } = await waiting({ ledger })
    const office = await openOffice({ ledger, drives: false, engine: { wake: async () => {} } })
    const send = async (verb: string, body: object) =>
      await answerOf(await office.send(`/runs/${runId}/${verb}`, 'boss', body, key))
    expect(await send('deny', { toolCallId, reason: 'No.' })).toEqual(taken)
    expect(await send('deny', { toolCallId, reason: 'No.' })).toEqual(taken)
    expect(await send('approve', { toolCallId })).toMatchObject(conflict)
    expect(await send('steer', { input: 'Hurry.' })).toMatchObject(conflict)
    expect(await ledger.inbox(runId as RunId)).toMatchObject([{ command: { type: 'deny' } }])
  })

  it('is none of a run that it was not sent to, such as a fork that shares the call', async () => {
    const { office, runId, toolCallId, send } = await waiting({ ledger: temporaryLedger() })
    const { seq } = (await office.ledger.head(runId as RunId))!
    const forked = await answerOf(await office.send(`/runs/${runId}/fork`, 'boss', { atSeq: seq }))
    expect(await send('approve', { toolCallId })).toEqual(taken)
    const fork = `/runs/${String(forked['runId'])}`
    await office.send(`${fork}/result?waitMs=20000`)
    const other = await office.send(`${fork}/approve`, 'boss', { toolCallId }, key)
    expect(await answerOf(other)).toMatchObject({ status: 409, code: 'unknown_call' })
  })

  it('is taken where it changes nothing', async () => {
    const agent = payingAgent()
    const office = await openOffice({ ledger: temporaryLedger(), agents: [agent] })
    const { scheduleId: id } = await office.runtime.schedule(agent, { cron: '0 3 * * *', input: 'Pay.' })
    for (const headers of [
      { 'idempotency-key': 'a' },
      { 'idempotency-key': 'b' },
      { 'idempotency-key': 'b' },
    ])
      expect(
        await answerOf(await office.send(`/runs/${id}/schedule`, 'boss', { paused: true }, headers)),
      ).toEqual(taken)
  })
})

async function recorded(response: Promise<Response>): Promise<readonly RuntimeEvent[]> {
  return ((await (await response).json()) as { events: RuntimeEvent[] }).events
}

describe('the stream of a run', () => {
  it('has every event once, also for a reader that reconnects in the middle', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One two three four.')] })
    const runId = await office.start('boss')
    const stream = { accept: 'text/event-stream' }
    const all: RuntimeEvent[] = []
    for await (const { id, data } of framesOf(
      await office.send(`/runs/${runId}/events`, 'boss', undefined, stream),
    )) {
      const event = JSON.parse(data) as RuntimeEvent
      expect(id).toBe(String(event.seq))
      all.push(event)
    }
    expect(all).toEqual(await recorded(office.send(`/runs/${runId}/events`)))
    expect(all.at(-1)?.type).toBe('run_finished')
    for (const { seq } of all.slice(0, -1)) {
      const headers = { ...stream, 'last-event-id': String(seq) }
      const rest: RuntimeEvent[] = []
      const response = await office.send(`/runs/${runId}/events`, 'boss', undefined, headers)
      for await (const { data } of framesOf(response)) rest.push(JSON.parse(data) as RuntimeEvent)
      expect(rest).toEqual(all.slice(seq))
    }
    const after = { ...stream, 'last-event-id': String(all.length) }
    expect((await office.send(`/runs/${runId}/events`, 'boss', undefined, after)).status).toBe(204)
    const beyond = await office.send(`/runs/${runId}/events?after=999`, 'boss', undefined, stream)
    expect(await answerOf(beyond)).toMatchObject({ status: 400, code: 'malformed' })
  })
})

describe('a start that is sent twice under one key', () => {
  it('begins one run, and no other caller meets the key', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.')] })
    const key = { 'idempotency-key': 'order-7' }
    const body = { agent: 'teller', input: 'Hi.', tags: ['shop'], metadata: { order: 7 } }
    const start = async (
      as: string,
      given: object,
    ): Promise<{ status: number; runId: string; code?: string }> => {
      const response = await office.send('/runs', as, given, key)
      return { ...((await response.json()) as { runId: string }), status: response.status }
    }
    const first = await start('ada', body)
    await office.send(`/runs/${first.runId}/result?waitMs=20000`)
    expect(await start('ada', body)).toEqual(first)
    expect(await start('ada', { ...body, input: 'Another.' })).toMatchObject({
      status: 409,
      code: 'key_used',
    })
    const bobs = await start('bob', body)
    expect([bobs.status, bobs.runId === first.runId]).toEqual([201, false])
    const [started] = await recorded(office.send(`/runs/${first.runId}/events`))
    expect(JSON.stringify(started)).toContain('"tags":["shop"]')
  })

  it('is refused another order, which is no fault of the server, however late that is found', async () => {
    const memory = memoryLedger()
    const ledger: Ledger = {
      ...memory,
      async *read(runId, options) {
        // Whoever compares the orders reads no further than the input; the first event is answered before.
        if (options?.toSeq === 4)
          for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => void setImmediate(resolve))
        yield* memory.read(runId, options)
      },
    }
    const [first, second] = [await openOffice({ ledger }), await openOffice({ ledger })]
    const start = async (office: Office, input: string): Promise<unknown> => {
      const body = { agent: 'office', input }
      return await (await office.send('/runs', 'ada', body, { 'idempotency-key': 'order-7' })).json()
    }
    const { runId } = (await start(first, 'Pay the bill.')) as { runId: string }
    await first.send(`/runs/${runId}/result?waitMs=20000`)
    expect(await start(second, 'Pay another.')).toMatchObject({ code: 'key_used' })
    expect(second.reported).toEqual([])
  })
})
