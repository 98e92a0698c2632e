import { DefaultChatTransport, type UIMessage } from 'ai'
import { describe, expect, it } from 'vitest'
import { defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { answerOf, openOffice, payingAgent, tellingAgent, type Office } from './kit/office.ts'
import { PageChat, textIn } from './kit/page-chat.ts'

function chatOf(
  office: Office,
  [agent, id]: readonly [agent: string, id: string],
  as = 'ada',
  messages: UIMessage[] = [],
): PageChat {
  const transport = new DefaultChatTransport({
    api: `${office.listening.url}/chat/${agent}`,
    headers: { authorization: `Bearer ${as}` },
  })
  return new PageChat(id, transport, messages)
}

describe('a chat of the AI SDK', () => {
  it('gets answers, one run a message, in one session', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.')] })
    const chat = chatOf(office, ['teller', 'c1'])
    await chat.sendMessage({ text: 'First?' })
    await chat.sendMessage({ text: 'Second?' })
    expect([chat.status, chat.error]).toEqual(['ready', undefined])
    expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(chat.messages.map(textIn)).toEqual(['First?', 'One.', 'Second?', 'Two.'])
    const { runs } = (await answerOf(await office.send('/runs?sessionId=c1'))) as unknown as {
      runs: { runId: string }[]
    }
    expect(runs.map(({ runId }) => runId)).toEqual([chat.messages[3]?.id, chat.messages[1]?.id])
    expect(chat.messages[3]?.metadata).toMatchObject({ reason: 'answered', runId: runs[0]?.runId })
  })

  it('takes a message with the same id once, unless it is written again or replaced', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.', 'Three.', 'Four.')] })
    const say = async (
      id: string,
      more: { readonly text?: string; readonly [field: string]: unknown } = {},
    ) => {
      const { text = 'Hi.', ...fields } = more
      const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text }] }]
      const response = await office.send('/chat/teller', 'ada', { id, messages, ...fields })
      const body = await response.text()
      const deltas = [...body.matchAll(/"delta":"([^"]*)"/g)].map(([, delta]) => delta)
      return { status: response.status, said: response.ok ? deltas.join('') : body }
    }
    const first = await say('c1')
    expect(first).toEqual({ status: 200, said: 'One.' })
    expect(await say('c1')).toEqual(first)
    expect((await say('c2')).said).toBe('Two.')
    const other = await say('c1', { text: 'Something else.' })
    expect([other.status, other.said]).toEqual([409, expect.stringContaining('key_used')])
    expect((await say('c1', { text: 'Something else.', messageId: 'm1' })).said).toBe('Three.')
    expect((await say('c1', { trigger: 'regenerate-message', messageId: 'a' })).said).toBe('Four.')
    expect(office.reported).toEqual([])
  })

  it('decides about a call, and the run continues in the same message', async () => {
    const office = await openOffice()
    const chat = chatOf(office, ['office', 'c1'])
    await chat.sendMessage({ text: 'Pay.' })
    const asked = chat.messages[1]?.parts.find((part) => part.type === 'dynamic-tool')
    expect(asked).toMatchObject({
      toolName: 'pay',
      state: 'approval-requested',
      input: { usd: 5 },
      approval: { requestReason: 'it is money' },
    })
    await chat.addToolApprovalResponse({ id: asked?.approval?.id ?? '', approved: true })
    await chat.sendMessage()
    expect([chat.status, chat.error]).toEqual(['ready', undefined])
    expect(chat.messages).toHaveLength(2)
    expect(chat.messages[1]?.parts.find((part) => part.type === 'dynamic-tool')).toMatchObject({
      state: 'output-available',
      output: '5 USD paid',
    })
    expect(textIn(chat.messages[1])).toBe('I pay. |Payment: 5 USD paid')
    const events = (await answerOf(await office.send(`/runs/${chat.messages[1]?.id}/events`)))['events']
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'approval_decided', by: 'ada', via: 'chat' }),
    )
  })

  it('shows the question to a page that opens while the run waits, and takes its decision', async () => {
    const office = await openOffice()
    const first = chatOf(office, ['office', 'c1'])
    await first.sendMessage({ text: 'Pay.' })
    const [said, shown] = first.messages
    for (const kept of [[], [said!], [said!, shown!]].map((each) => structuredClone(each))) {
      const page = chatOf(office, ['office', 'c1'], 'ada', [...kept])
      await page.resumeStream()
      expect(page.messages.at(-1)).toMatchObject({ id: first.messages[1]?.id, role: 'assistant' })
      expect(textIn(page.messages.at(-1))).toBe('I pay. ')
      expect(page.messages.map(({ role }) => role).slice(0, -1)).toEqual(kept.length === 0 ? [] : ['user'])
    }
    const second = chatOf(office, ['office', 'c1'])
    await second.resumeStream()
    const asked = second.messages[0]?.parts.find((part) => part.type === 'dynamic-tool')
    await second.addToolApprovalResponse({ id: asked?.approval?.id ?? '', approved: true })
    await second.sendMessage()
    expect(textIn(second.messages[0])).toBe('I pay. |Payment: 5 USD paid')
  })

  it('denies a call, and the model reads why', async () => {
    const office = await openOffice()
    const chat = chatOf(office, ['office', 'c1'])
    await chat.sendMessage({ text: 'Pay.' })
    const asked = chat.messages[1]?.parts.find((part) => part.type === 'dynamic-tool')
    await chat.addToolApprovalResponse({ id: asked?.approval?.id ?? '', approved: false, reason: 'too dear' })
    await chat.sendMessage()
    expect(chat.messages[1]?.parts.find((part) => part.type === 'dynamic-tool')).toMatchObject({
      state: 'output-denied',
    })
    expect(textIn(chat.messages[1])).toContain('too dear')
  })

  it('is taken up by a page that was loaded anew, while its run is under way', async () => {
    const end = Promise.withResolvers<void>()
    const model = scriptedModel([{ text: 'Slowly told.', until: end.promise }])
    const agents = [defineAgent({ name: 'teller', instructions: 'Answer.', model })]
    const office = await openOffice({ agents })
    const first = chatOf(office, ['teller', 'c1'])
    const sending = first.sendMessage({ text: 'Well?' })
    while (textIn(first.messages[1]) === '') await new Promise(setImmediate)
    const second = chatOf(office, ['teller', 'c1'], 'ada', [first.messages[0]!])
    const resuming = second.resumeStream()
    while (textIn(second.messages[1]) === '') await new Promise(setImmediate)
    end.resolve()
    await Promise.all([sending, resuming])
    expect(second.messages).toEqual(first.messages)
    expect(textIn(second.messages[1])).toBe('Slowly told.')
    // Nothing is under way any more.
    await second.resumeStream()
    expect([second.status, second.messages.length]).toEqual(['ready', 2])
  })

  it('has an answer written anew, from where it was before', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.', 'Another two.')] })
    const chat = chatOf(office, ['teller', 'c1'])
    await chat.sendMessage({ text: 'First?' })
    await chat.sendMessage({ text: 'Second?' })
    await chat.regenerate()
    expect(chat.messages.map(textIn)).toEqual(['First?', 'One.', 'Second?', 'Another two.'])
    const transcript = await answerOf(await office.send(`/runs/${chat.messages[3]?.id}/transcript`))
    expect(JSON.stringify(transcript)).not.toContain('"Two."')
    expect(transcript['messages']).toHaveLength(4)
  })

  it('takes back the text of an attempt that failed', async () => {
    const model = scriptedModel([
      { text: 'Half of it', fail: 'overloaded', retryAfterMs: 1 },
      { text: 'All of it.' },
    ])
    const agents = [defineAgent({ name: 'teller', instructions: 'Answer.', model })]
    const office = await openOffice({ agents })
    const chat = chatOf(office, ['teller', 'c1'])
    await chat.sendMessage({ text: 'Well?' })
    expect(textIn(chat.messages[1])).toBe('All of it.')
  })

  it('sends files along, and no URL of another kind', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'Seen.')] })
    const chat = chatOf(office, ['teller', 'c1'])
    const files = [{ type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,aGk=' }] as const
    await chat.sendMessage({ text: 'Look.', files: [...files] })
    const { messages } = (await answerOf(
      await office.send(`/runs/${chat.messages[1]?.id}/transcript`),
    )) as unknown as { messages: { parts: unknown[] }[] }
    expect(messages[0]?.parts).toContainEqual({ type: 'image', mediaType: 'image/png', data: 'aGk=' })
    const parts = [{ type: 'file', mediaType: 'image/png', url: 'file:///etc/passwd' }]
    const body = { id: 'c2', messages: [{ id: 'm', role: 'user', parts }] }
    expect(await answerOf(await office.send('/chat/teller', 'ada', body))).toMatchObject({ status: 400 })
  })
})

describe('a chat of another caller', () => {
  it('is neither continued, decided nor followed', async () => {
    const office = await openOffice({ agents: [payingAgent()] })
    const adas = chatOf(office, ['office', 'c1'])
    await adas.sendMessage({ text: 'Pay.' })
    const asked = adas.messages[1]?.parts.find((part) => part.type === 'dynamic-tool')
    const bobs = chatOf(office, ['office', 'c1'], 'bob', structuredClone(adas.messages))
    await bobs.addToolApprovalResponse({ id: asked?.approval?.id ?? '', approved: true })
    await bobs.sendMessage()
    expect(bobs.error?.message).toContain('run_not_found')
    const said = { id: 'c1', messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }] }
    expect(await answerOf(await office.send('/chat/office', 'bob', said))).toMatchObject({
      status: 403,
      code: 'out_of_scope',
    })
    expect((await office.send('/chat/office/c1/stream', 'bob')).status).toBe(204)
    const events = (await answerOf(await office.send(`/runs/${adas.messages[1]?.id}/events`)))['events']
    expect(JSON.stringify(events)).not.toContain('approval_decided')
  })

  it('and a decision of another question are refused', async () => {
    const office = await openOffice()
    const chat = chatOf(office, ['office', 'c1'])
    await chat.sendMessage({ text: 'Pay.' })
    const message = structuredClone(chat.messages[1]!)
    const asked = message.parts.find((part) => part.type === 'dynamic-tool')
    const id = asked?.approval?.id ?? ''
    for (const [forged, code] of [
      [id.replace(/^1\./, '2.'), 'not_awaiting_approval'],
      [id.replace(/\.[0-9a-f]/, '.x'), 'not_awaiting_approval'],
      ['approval', 'malformed'],
    ] as const) {
      const part = { ...asked, state: 'approval-responded', approval: { id: forged, approved: true } }
      const body = { id: 'c1', messages: [{ ...message, parts: [part] }] }
      const answer = await answerOf(await office.send('/chat/office', 'ada', body))
      expect({ forged, ...answer }).toMatchObject({ forged, code })
    }
  })
})
