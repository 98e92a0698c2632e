import { HttpAgent } from '@ag-ui/client'
import type { UIMessage } from 'ai'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Agent, defineAgent, joinText } from '@tallystick/core'
import { readStart } from '@tallystick/core/internal'
import { parseRunId } from '@tallystick/core/vocabulary'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { RunAgent } from '@tallystick/server/client/ag-ui'
import { answerOf, openOffice, type Office } from './kit/office.ts'
import { PageChat, questionIn, textIn, transportOf } from './kit/page-chat.ts'

/** An agent that answers with texts, the first of them when it is let go, and what its model was shown. */
function slowAgent(...texts: readonly string[]): {
  readonly agent: Agent
  readonly go: () => void
  readonly shown: () => readonly string[]
} {
  const gate = Promise.withResolvers<void>()
  const model = scriptedModel(
    texts.map((text, index) => (index === 0 ? { text, until: gate.promise } : { text })),
  )
  const agent = defineAgent({ name: 'teller', instructions: 'Answer.', model })
  const shown = (): readonly string[] =>
    (model.requests.at(-1)?.messages ?? []).flatMap((message) =>
      message.role === 'tool' ? [] : [joinText(message.parts)],
    )
  return { agent, go: () => gate.resolve(), shown }
}

/** An agent that asks before it orders, and what it has ordered. */
function orderingAgent(): {
  readonly agent: Agent
  readonly shown: () => string
  readonly ordered: number[]
} {
  const ordered: number[] = []
  const order = testTool({
    ...{ name: 'order', effect: 'write', check: () => ({ kind: 'ask', reason: 'it is money' }) },
    run: () => `${ordered.push(1)} ordered`,
  })
  const model = scriptedModel([
    { text: 'I order.', toolCalls: [{ name: 'order', input: {} }] },
    { text: 'As you said.' },
    { text: 'And more.' },
  ])
  const agent = defineAgent({ name: 'clerk', instructions: 'Order.', model, tools: [order] })
  return { agent, shown: () => JSON.stringify(model.requests.at(-1)?.messages ?? []), ordered }
}

const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise(setImmediate)
}

/** What a route of a chat, or of runs, answers. */
interface Answer {
  readonly messages: readonly UIMessage[]
  readonly status?: unknown
  readonly before?: string
  readonly runs?: readonly { readonly runId: string }[]
}

const pageOf = async (office: Office, path: string, as = 'ada'): Promise<Answer> =>
  (await (await office.send(path, as)).json()) as Answer

describe('a message that is sent while a run is under way', () => {
  it.each(['steer', 'queue'] as const)('is answered in a message of its own: %s', async (whenBusy) => {
    const { agent, go, shown } = slowAgent('First answer.', 'Second answer.')
    const office = await openOffice({ agents: [agent] })
    const transport = transportOf(office, 'teller', { whenBusy })
    const chat = new PageChat('c1', transport)
    const first = chat.sendMessage({ text: 'First?' })
    await until(() => textIn(chat.messages[1]) !== '')
    const second = new PageChat('c1', transport, structuredClone(chat.messages))
    const sent = second.sendMessage({ text: 'Second?' })
    await until(() => office.reported.length > 0 || second.status === 'submitted')
    let waiting: readonly UIMessage[] = []
    while (waiting.length < 3) waiting = (await pageOf(office, '/chat/teller/c1')).messages
    expect(waiting[2]).toMatchObject({ role: 'user', metadata: { isWaiting: true } })
    go()
    await Promise.all([first, sent])
    expect([chat.error, second.error]).toEqual([undefined, undefined])
    expect(chat.messages.map(textIn)).toEqual(['First?', 'First answer.'])
    expect(textIn(second.messages.at(-1))).toBe('Second answer.')
    expect(shown()).toEqual(['First?', 'First answer.', 'Second?'])
    const { messages, status } = await pageOf(office, '/chat/teller/c1')
    expect(messages.map(textIn)).toEqual(['First?', 'First answer.', 'Second?', 'Second answer.'])
    expect([messages[3]?.id, status]).toEqual([second.messages.at(-1)?.id, 'done'])
    expect(office.reported).toEqual([])
  })

  it('given the run is stopped before it shows the message, is said before the next one', async () => {
    const { agent, go, shown } = slowAgent('Never whole.', 'To both.')
    const office = await openOffice({ agents: [agent] })
    const chat = new PageChat('c1', transportOf(office, 'teller'))
    void chat.sendMessage({ text: 'First?' })
    await until(() => textIn(chat.messages[1]) !== '')
    const runId = chat.messages[1]?.id ?? ''
    const queued = { id: 'm2', role: 'user', parts: [{ type: 'text', text: 'Second?' }] }
    const waiting = office.send('/chat/teller', 'ada', { id: 'c1', messages: [queued], whenBusy: 'queue' })
    await waiting
    expect(await answerOf(await office.send('/chat/teller/c1/stop', 'ada', { runId }))).toMatchObject({
      accepted: true,
    })
    go()
    const next = new PageChat('c1', transportOf(office, 'teller'))
    await next.sendMessage({ text: 'Third?' })
    expect([next.error, textIn(next.messages[1])]).toEqual([undefined, 'To both.'])
    expect(shown().slice(-2)).toEqual(['Second?', 'Third?'])
    const { messages } = await pageOf(office, '/chat/teller/c1')
    expect(messages.filter(({ role }) => role === 'user').map(textIn)).toEqual([
      'First?',
      'Second?',
      'Third?',
    ])
  })
})

describe('a message that is sent while a call waits for a person', () => {
  it('is taken, and the decision that comes later counts', async () => {
    const { agent, shown, ordered } = orderingAgent()
    const office = await openOffice({ agents: [agent] })
    const chat = new PageChat('c1', transportOf(office, 'clerk'))
    await chat.sendMessage({ text: 'Order it.' })
    const asked = questionIn(chat.messages[1])
    await chat.sendMessage({ text: 'In blue.' })
    expect([chat.status, chat.error, chat.messages.length]).toEqual(['ready', undefined, 3])
    await chat.addToolApprovalResponse({ id: asked, approved: true })
    await chat.sendMessage()
    expect([chat.status, chat.error, ordered.length]).toEqual(['ready', undefined, 1])
    await office.runtime.idle()
    expect(shown()).toContain('In blue.')
    const { messages } = await pageOf(office, '/chat/clerk/c1')
    expect(messages.map(textIn)).toEqual(['Order it.', 'I order.', 'In blue.', 'As you said.'])
  })

  it('brings a decision along that was not sent', async () => {
    const { agent, shown, ordered } = orderingAgent()
    const office = await openOffice({ agents: [agent] })
    const chat = new PageChat('c1', transportOf(office, 'clerk'))
    await chat.sendMessage({ text: 'Order it.' })
    await chat.sendMessage({ text: 'Or rather not.' })
    await chat.addToolApprovalResponse({ id: questionIn(chat.messages[1]), approved: false })
    await chat.sendMessage({ text: 'I said no.' })
    expect([chat.status, chat.error, ordered]).toEqual(['ready', undefined, []])
    expect(textIn(chat.messages.at(-1))).toBe('As you said.')
    expect(shown()).toContain('I said no.')
  })

  it('given the page rewrites it, ends the question', async () => {
    const { agent, ordered } = orderingAgent()
    const office = await openOffice({ agents: [agent] })
    const chat = new PageChat('c1', transportOf(office, 'clerk'))
    await chat.sendMessage({ text: 'Order it.' })
    await chat.sendMessage({ text: 'Just talk.', messageId: chat.messages[0]!.id })
    expect([chat.error, textIn(chat.messages.at(-1)), ordered]).toEqual([undefined, 'As you said.', []])
    expect((await pageOf(office, '/chat/clerk/c1')).messages.map(textIn)).toEqual([
      'Just talk.',
      'As you said.',
    ])
  })
})

describe('an earlier message that is rewritten', () => {
  it('is what the model sees: a branch of the session, on record', async () => {
    const { agent, go, shown } = slowAgent('A1', 'A2', 'A3', 'A4')
    go()
    const office = await openOffice({ agents: [agent] })
    const chat = new PageChat('c1', transportOf(office, 'teller'))
    for (const text of ['One', 'Two', 'Three']) await chat.sendMessage({ text })
    const [, first, second] = chat.messages
    await chat.sendMessage({ text: 'Two, better', messageId: second!.id })
    expect(chat.messages.map(textIn)).toEqual(['One', 'A1', 'Two, better', 'A4'])
    expect(shown()).toEqual(['One', 'A1', 'Two, better'])
    expect((await pageOf(office, '/chat/teller/c1')).messages.map(textIn)).toEqual(chat.messages.map(textIn))
    const branch = await readStart(office.ledger, parseRunId(chat.messages[3]!.id)!)
    expect(branch).toMatchObject({ sessionId: 'c1', parent: { relation: 'session' } })
    expect(branch?.parent?.runId).not.toBe(first!.id)
    const { runs } = await answerOf(await office.send('/runs?sessionId=c1'))
    expect(runs).toHaveLength(4)
  })

  it('given an earlier answer is asked for anew, drops what came after it', async () => {
    const { agent, go, shown } = slowAgent('A1', 'A2', 'Better A1')
    go()
    const office = await openOffice({ agents: [agent] })
    const chat = new PageChat('c1', transportOf(office, 'teller'))
    for (const text of ['One', 'Two']) await chat.sendMessage({ text })
    await chat.regenerate({ messageId: chat.messages[1]!.id })
    expect(chat.messages.map(textIn)).toEqual(['One', 'Better A1'])
    expect(shown()).toEqual(['One'])
  })

  it('given a run answers what was taken back, stops it', async () => {
    const { agent, go, shown } = slowAgent('Too long', 'Short.')
    const office = await openOffice({ agents: [agent] })
    const chat = new PageChat('c1', transportOf(office, 'teller'))
    void chat.sendMessage({ text: 'Tell all.' })
    await until(() => textIn(chat.messages[1]) !== '')
    const page = new PageChat('c1', transportOf(office, 'teller'), structuredClone(chat.messages))
    await page.sendMessage({ text: 'Tell little.', messageId: page.messages[0]!.id })
    go()
    expect(page.messages.map(textIn)).toEqual(['Tell little.', 'Short.'])
    expect(shown()).toEqual(['Tell little.'])
    expect(await pageOf(office, `/runs/${chat.messages[1]!.id}`)).toMatchObject({ reason: 'cancelled' })
  })
})

describe('the transport of a page', () => {
  it('stops the run, however early the page stops, and no other one', async () => {
    const { agent, go } = slowAgent('Long.', 'Other.')
    const office = await openOffice({ agents: [agent] })
    const chat = new PageChat('c1', transportOf(office, 'teller'))
    const sending = chat.sendMessage({ text: 'Well?' })
    await until(() => chat.status === 'submitted')
    await chat.stop()
    await sending
    expect(chat.status).toBe('ready')
    let runs: Answer['runs'] = []
    while (runs?.length === 0) ({ runs } = await pageOf(office, '/runs?sessionId=c1'))
    expect(await office.runtime.resume(runs?.[0]?.runId ?? '').result).toMatchObject({ reason: 'cancelled' })
    go()
  })

  it('given it loses the connection, leaves the run alone, and takes it up again', async () => {
    const { agent, go } = slowAgent('Told.')
    const office = await openOffice({ agents: [agent] })
    const lost = new AbortController()
    const fetching: typeof fetch = (url, init) =>
      fetch(url, { ...init, signal: AbortSignal.any([lost.signal, ...(init?.signal ? [init.signal] : [])]) })
    const chat = new PageChat('c1', transportOf(office, 'teller', { fetch: fetching }))
    const sending = chat.sendMessage({ text: 'Well?' })
    await until(() => textIn(chat.messages[1]) !== '')
    lost.abort(new TypeError('network error'))
    await sending
    const page = new PageChat('c1', transportOf(office, 'teller'), structuredClone(chat.messages))
    const resuming = page.resumeStream()
    await until(() => page.status === 'streaming')
    go()
    await resuming
    expect(page.messages.map(textIn)).toEqual(['Well?', 'Told.'])
  })

  it('tells a page of a decision, and of a message, in another tab', async () => {
    const { agent } = orderingAgent()
    const office = await openOffice({ agents: [agent] })
    const first = new PageChat('c1', transportOf(office, 'clerk'))
    const seen: (readonly string[])[] = []
    const end = transportOf(office, 'clerk').watch('c1', ({ messages }) => {
      seen.push(
        messages.flatMap(({ parts }) => parts.flatMap((part) => ('state' in part ? [part.state ?? ''] : []))),
      )
    })
    await first.sendMessage({ text: 'Order it.' })
    await until(() => seen.at(-1)?.includes('approval-requested') ?? false)
    await first.addToolApprovalResponse({ id: questionIn(first.messages[1]), approved: true })
    await first.sendMessage()
    await until(() => seen.at(-1)?.includes('output-available') ?? false)
    end()
    expect(seen.flat()).toEqual(expect.arrayContaining(['approval-requested', 'output-available']))
  })
})

describe('a chat that is loaded anew', () => {
  it('comes in pages, the newest first, with the messages of the user', async () => {
    const { agent, go } = slowAgent('A1', 'A2', 'A3')
    go()
    const office = await openOffice({ agents: [agent] })
    const transport = transportOf(office, 'teller')
    const chat = new PageChat('c1', transport)
    for (const text of ['One', 'Two', 'Three']) await chat.sendMessage({ text })
    const newest = await transport.messages('c1')
    expect(newest.messages.map(({ id, role }) => [id, role])).toEqual(
      chat.messages.map(({ id, role }) => [id, role]),
    )
    expect(newest.before).toBe(undefined)
    const last = await pageOf(office, '/chat/teller/c1?limit=2')
    expect(last.messages.map(textIn)).toEqual(['Three', 'A3'])
    const older = await transport.messages('c1', { before: last.before ?? '' })
    expect(older.messages.map(textIn)).toEqual(['One', 'A1', 'Two', 'A2'])
    expect([older.version, older.before]).toEqual([undefined, undefined])
  })

  it('is the same for a client of AG-UI, with what the run waits for', async () => {
    const { agent } = orderingAgent()
    const office = await openOffice({ agents: [agent] })
    const config = {
      url: `${office.listening.url}/ag-ui/clerk`,
      headers: { authorization: 'Bearer ada' },
      threadId: 't1',
    }
    const client = new HttpAgent(config)
    client.addMessage({ id: 'm1', role: 'user', content: 'Order it.' })
    await client.runAgent()
    const page = await new RunAgent(config).thread()
    expect(page).toMatchObject({ status: 'suspended', interrupts: [{ reason: 'tool_approval' }] })
    expect(page.messages).toEqual(client.messages)
    const reloaded = new RunAgent(config)
    reloaded.setMessages([...page.messages])
    reloaded.addMessage({ id: 'm2', role: 'user', content: 'In blue.' })
    await reloaded.runAgent({ resume: [] })
    const resume = [
      { interruptId: page.interrupts![0]!.id, status: 'resolved' as const, payload: { approved: true } },
    ]
    await reloaded.runAgent({ resume })
    await office.runtime.idle()
    const { messages } = await new RunAgent(config).thread()
    expect(messages.filter(({ role }) => role !== 'tool').at(-1)?.content).toBe('As you said.')
    expect(messages.map(({ id }) => id)).toContain('m2')
  })

  it('given it is of another caller, looks like one that has not begun', async () => {
    const { agent } = orderingAgent()
    const office = await openOffice({ agents: [agent] })
    const chat = new PageChat('c1', transportOf(office, 'clerk'))
    await chat.sendMessage({ text: 'Order it.' })
    for (const root of ['/chat/clerk', '/ag-ui/clerk']) {
      expect(await pageOf(office, `${root}/c1`, 'bob')).toEqual(await pageOf(office, `${root}/none`, 'bob'))
      const stop = async (id: string): Promise<unknown> =>
        await answerOf(await office.send(`${root}/${id}/stop`, 'bob', {}))
      expect(await stop('c1')).toEqual(await stop('none'))
    }
    const runId = chat.messages[1]!.id
    const stopped = await answerOf(await office.send('/chat/clerk/c1/stop', 'bob', { runId }))
    expect(stopped).toMatchObject({ status: 404, code: 'run_not_found' })
    expect(await pageOf(office, `/chat/clerk/c1?before=${runId}.9`, 'bob')).toMatchObject({ status: 404 })
    expect(await pageOf(office, `/runs/${runId}`)).toMatchObject({ status: 'suspended' })
  })
})

it('given a client of AG-UI aborts its run, the run of the server is cancelled', async () => {
  const { agent, go } = slowAgent('Long.')
  const office = await openOffice({ agents: [agent] })
  const headers = { authorization: 'Bearer ada' }
  const client = new RunAgent({ url: `${office.listening.url}/ag-ui/teller`, headers, threadId: 't1' })
  client.addMessage({ id: 'm1', role: 'user', content: 'Well?' })
  let outcome: unknown
  const running = client.runAgent(
    {},
    {
      onTextMessageContentEvent: () => client.abortRun(),
      onRunFinishedEvent: ({ event }) => void (outcome = event),
    },
  )
  await running
  go()
  expect(outcome).toMatchObject({ outcome: { type: 'cancelled' } })
})

/** An office whose callers may do all but cancel. */
const patientOffice = async (agent: Agent): Promise<Office> =>
  await openOffice({
    agents: [agent],
    authorize: () => ({ name: 'ada', sees: 'everything', may: ['start'] }),
  })

const clientOf = (office: Office, config: object = {}): RunAgent => {
  const headers = { authorization: 'Bearer ada' }
  const client = new RunAgent({
    url: `${office.listening.url}/ag-ui/teller`,
    headers,
    threadId: 't1',
    ...config,
  })
  client.addMessage({ id: 'm1', role: 'user', content: 'Well?' })
  return client
}

describe('a stop that the server refuses', () => {
  it.each(['the page', 'the console'])('is told to %s, once, and the run goes on', async (where) => {
    const { agent, go } = slowAgent('Long.')
    const office = await patientOffice(agent)
    const told: unknown[] = []
    const tell = (error: unknown): void => void told.push(error)
    const printed = vi.spyOn(console, 'error').mockImplementation(tell)
    onTestFinished(() => printed.mockRestore())
    const chat = new PageChat(
      'c1',
      transportOf(office, 'teller', where === 'the page' ? { onStopError: tell } : {}),
    )
    void chat.sendMessage({ text: 'Well?' })
    await until(() => textIn(chat.messages[1]) !== '')
    await chat.stop()
    await until(() => told.length > 0)
    expect(printed.mock.calls.length).toBe(where === 'the page' ? 0 : 1)
    expect(told).toEqual([
      expect.objectContaining({
        message: 'The run could not be stopped, and continues.',
        cause: expect.objectContaining({ message: expect.stringContaining('not_permitted') }),
      }),
    ])
    go()
    await office.runtime.idle()
    expect(await pageOf(office, `/runs/${chat.messages[1]!.id}`)).toMatchObject({ reason: 'answered' })
  })

  it('is told to a client of AG-UI, which reads the answer to its end', async () => {
    const { agent, go } = slowAgent('Long.')
    const office = await patientOffice(agent)
    const client = clientOf(office, { onStopError: () => go() })
    await client.runAgent({}, { onTextMessageContentEvent: () => client.abortRun() })
    expect(client.messages.at(-1)?.content).toBe('Long.')
  })
})

describe('a stop that does not arrive', () => {
  /** Stops a chat over a connection that fails some times, and passes the waits of the page. */
  const stopOver = async (
    fail: () => Promise<Response>,
    times: number,
  ): Promise<{ readonly told: readonly Error[]; readonly sent: number; readonly ending: unknown }> => {
    const { agent, go } = slowAgent('Long.')
    const office = await openOffice({ agents: [agent] })
    const told: Error[] = []
    let sent = 0
    let isOver = false
    const options = {
      onStopError: (error: Error) => void (isOver = told.push(error) > 0),
      fetch: async (to: string | URL | Request, init?: RequestInit) => {
        if (!String(to instanceof Request ? to.url : to).endsWith('/stop')) return await fetch(to, init)
        if (++sent <= times) return await fail()
        const response = await fetch(to, init)
        isOver = true
        return response
      },
    }
    const chat = new PageChat('c1', transportOf(office, 'teller', options))
    void chat.sendMessage({ text: 'Well?' })
    await until(() => textIn(chat.messages[1]) !== '')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    await chat.stop()
    await until(() => {
      vi.advanceTimersByTime(100)
      return isOver
    })
    vi.useRealTimers()
    go()
    await office.runtime.idle()
    return { told, sent, ending: await pageOf(office, `/runs/${chat.messages[1]!.id}`) }
  }
  const lost = async (): Promise<Response> => await Promise.reject(new TypeError('fetch failed'))

  it.each([
    ['the network', lost],
    ['a gateway', async () => new Response('No upstream', { status: 502 })],
    ['a limit of requests', async () => new Response('Slow down', { status: 429 })],
  ])('given %s fails four times, then it is sent again, and nobody is told', async (_, fail) => {
    expect(await stopOver(fail, 4)).toMatchObject({ told: [], sent: 5, ending: { reason: 'cancelled' } })
  })

  it('given it never arrives, then the page is told why, once, and the run goes on', async () => {
    const { told, sent, ending } = await stopOver(lost, Infinity)
    expect([told.map(({ cause }) => cause), sent]).toEqual([[new TypeError('fetch failed')], 5])
    expect(ending).toMatchObject({ reason: 'answered' })
  })
})

describe('a client of AG-UI', () => {
  it('given it is aborted before its request is sent, then no run begins', async () => {
    const { agent, shown } = slowAgent('Never asked for.')
    const office = await openOffice({ agents: [agent] })
    const client = clientOf(office)
    const running = client.runAgent()
    client.abortRun()
    await running
    expect(await client.thread()).toMatchObject({ messages: [] })
    expect(shown()).toEqual([])
  })

  it('given it is a clone, stops its own run', async () => {
    const { agent, go } = slowAgent('Long.')
    const office = await openOffice({ agents: [agent] })
    const clone = clientOf(office).clone()
    let outcome: unknown
    await clone.runAgent(
      {},
      {
        onTextMessageContentEvent: () => clone.abortRun(),
        onRunFinishedEvent: ({ event }) => void (outcome = event),
      },
    )
    go()
    expect(outcome).toMatchObject({ outcome: { type: 'cancelled' } })
    expect((await clone.thread()).messages.length).toBeGreaterThan(0)
  })

  it('given the server refuses its request, stops no other run of the thread', async () => {
    const { agent } = orderingAgent()
    const office = await openOffice({ agents: [agent] })
    const url = `${office.listening.url}/ag-ui/clerk`
    await clientOf(office, { url }).runAgent()
    const [refused, sent] = [Promise.withResolvers<void>(), [] as string[]]
    const client = clientOf(office, {
      url,
      fetch: async (to: string, init: RequestInit) => {
        const isRun = to === url
        sent.push(to)
        const response = await fetch(to, { ...init, ...(isRun && { body: '{}' }) })
        if (isRun) refused.resolve()
        return response
      },
    })
    const running = client.runAgent()
    await refused.promise
    client.abortRun()
    await expect(running).rejects.toThrow('400')
    expect(await client.thread()).toMatchObject({ status: 'suspended' })
    expect(sent).toEqual([url, `${url}/t1`])
  })

  it('reads its thread as it sends: with the fetch that it was given', async () => {
    const { agent, go } = slowAgent('Told.')
    go()
    const office = await openOffice({ agents: [agent] })
    const client = clientOf(office, {
      headers: {},
      fetch: (url: string, init: RequestInit) =>
        fetch(url, {
          ...init,
          headers: { 'content-type': 'application/json', authorization: 'Bearer ada' },
        }),
    })
    await client.runAgent()
    expect(await client.thread()).toMatchObject({ status: 'done' })
  })
})
