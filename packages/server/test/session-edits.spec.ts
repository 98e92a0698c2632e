import { expect, it } from 'vitest'
import { answerOf, openOffice, payingAgent, tellingAgent } from './kit/office.ts'
import { PageChat, textIn, transportOf } from './kit/page-chat.ts'

const hello = { messages: [{ role: 'user', content: 'Hello.' }] }

it('messages are added to a session, taken back, cleared and branched, under the name of the caller', async () => {
  const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.')] })
  const post = async (path: string, body: object, as = 'ada') => {
    const response = await office.send(`/sessions/${path}`, as, body)
    return { ...(await answerOf(response)), status: response.status } as Record<string, unknown>
  }
  const runId = await office.start('ada', { agent: 'teller', sessionId: 's1' })
  await (await office.send(`/runs/${runId}/result?waitMs=20000`, 'ada')).text()
  const more = [{ role: 'assistant', content: 'Yes.' }]
  const added = await post('s1/messages', { messages: [...hello.messages, ...more], reason: 'by phone' })
  expect(added).toMatchObject({ status: 201, sessionId: 's1', messages: { length: 4 } })
  expect(await post('s1/pop', { reason: 'wrong' })).toMatchObject({
    status: 200,
    messages: [{ role: 'assistant', parts: [{ text: 'Yes.' }] }],
  })
  const branch = await post('s1/branch', { sessionId: 's2' })
  expect(branch).toMatchObject({ status: 201, sessionId: 's2' })
  expect(branch['messages']).toHaveLength(3)
  expect((await post('s1/clear', {}))['messages']).toHaveLength(3)
  const read = async (id: string) => await answerOf(await office.send(`/sessions/${id}`, 'ada'))
  expect(await read('s1')).toMatchObject({ history: { messages: [] } })
  expect(((await read('s2'))['history'] as { messages: object[] }).messages).toHaveLength(3)
  const edits = []
  for await (const event of office.ledger.find({ types: ['session_edited'] }))
    if (event.type === 'session_edited') edits.push([event.edit, event.by, event.reason])
  expect(edits).toEqual([
    ['append', 'ada', 'by phone'],
    ['pop', 'ada', 'wrong'],
    ['branch', 'ada', undefined],
    ['clear', 'ada', undefined],
  ])
})

it('a session of another caller, one that waits, and a caller who may start nothing are refused', async () => {
  const office = await openOffice({ agents: [payingAgent('cashier')] })
  const status = async (path: string, body: object, as: string) => {
    const response = await office.send(`/sessions/${path}`, as, body)
    const { code } = (await answerOf(response)) as { readonly code?: string }
    return [response.status, code]
  }
  const runId = await office.start('ada', { sessionId: 's1' })
  await (await office.send(`/runs/${runId}/result?waitMs=20000`, 'ada')).text()
  for (const [path, body] of [
    ['s1/messages', hello],
    ['s1/pop', {}],
    ['s1/clear', {}],
    ['s1/branch', { sessionId: 's2' }],
  ] as const) {
    expect([path, ...(await status(path, body, 'bob'))]).toEqual([path, 404, 'session_not_found'])
    expect((await status(path, body, 'viewer'))[0]).toBe(403)
  }
  for (const path of ['s1/pop', 's1/clear']) expect((await status(path, {}, 'ada'))[0]).toBe(409)
  expect(await status('none/messages', hello, 'ada')).toEqual([404, 'session_not_found'])
  expect((await status('s1/messages', { messages: [{ role: 'tool', content: 'x' }] }, 'ada'))[0]).toBe(400)
})

it('a session begins with messages under an agent, for those who could start a run of it', async () => {
  const office = await openOffice({ agents: [tellingAgent('teller', 'One.')] })
  const begin = async (as: string, more: object = { agent: 'teller' }) =>
    await answerOf(await office.send('/sessions/s1/messages', as, { ...hello, ...more }))
  expect(await begin('ada', {})).toMatchObject({ status: 404, code: 'session_not_found' })
  expect(await begin('viewer')).toMatchObject({ status: 403 })
  expect(await begin('ada', { agent: 'nobody' })).toMatchObject({ status: 404, code: 'agent_not_found' })
  expect(await begin('ada', { agent: 'teller', subject: 'bob' })).toMatchObject({ code: 'out_of_scope' })
  expect(await begin('ada')).toMatchObject({ status: 201, messages: { length: 1 } })
  // It is ada's now, and goes on from there, whatever agent is named.
  expect(await begin('bob')).toMatchObject({ status: 403, code: 'out_of_scope' })
  expect(await begin('ada', { agent: 'nobody' })).toMatchObject({ status: 201, messages: { length: 2 } })
  const runId = await office.start('ada', { agent: 'teller', sessionId: 's1' })
  await (await office.send(`/runs/${runId}/result?waitMs=20000`, 'ada')).text()
  expect(await answerOf(await office.send('/sessions/s1', 'ada'))).toMatchObject({
    history: { messages: { length: 4 } },
  })
  expect(office.reported).toEqual([])
})

it('who may withdraw ends an approval that stands between two runs, and may edit nothing else', async () => {
  const office = await openOffice({
    agents: [payingAgent('cashier')],
    authorize: ({ headers }) =>
      headers.get('authorization') === 'Bearer guard'
        ? { name: 'guard', sees: 'everything', may: ['withdraw'] }
        : { name: 'ada', sees: 'everything' },
  })
  const runId = await office.start('ada', { sessionId: 's1' })
  const waiting = await answerOf(await office.send(`/runs/${runId}/result?waitMs=20000`))
  const [{ toolCallId }] = waiting['pendingApprovals'] as [{ readonly toolCallId: string }]
  const standing = { for: 'session', expiresInMs: 60_000 }
  await (await office.send(`/runs/${runId}/approve`, 'ada', { toolCallId, standing })).text()
  await (await office.send(`/runs/${runId}/result?waitMs=20000`)).text()
  const withdraw = async () =>
    await answerOf(await office.send('/sessions/s1/withdraw', 'guard', { standing: toolCallId }))
  expect(await withdraw()).toMatchObject({ withdrawn: true })
  expect(await withdraw()).toMatchObject({ withdrawn: false })
  expect((await office.send('/sessions/s1/pop', 'guard', {})).status).toBe(403)
  const edits = []
  for await (const event of office.ledger.find({ types: ['session_edited'] })) edits.push(event)
  expect(edits).toMatchObject([{ edit: 'withdraw', by: 'guard', standing: toolCallId }])
})

it('a session begins under an id that a start could name', async () => {
  const office = await openOffice({ agents: [tellingAgent('teller', 'One.')] })
  for (const sessionId of ['%20', 'x'.repeat(201), '%00']) {
    const body = { ...hello, agent: 'teller' }
    const begun = await answerOf(await office.send(`/sessions/${sessionId}/messages`, 'ada', body))
    expect(begun).toMatchObject({ status: 400 })
  }
  expect(await Array.fromAsync(office.ledger.runs())).toEqual([])
})

it('a page of the chat has the messages that were added, and none that were taken back', async () => {
  const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.', 'Three.')] })
  const edit = async (verb: string, body: object) => {
    await (await office.send(`/sessions/c1/${verb}`, 'ada', body)).text()
    const { messages } = (await answerOf(await office.send('/chat/teller/c1', 'ada'))) as unknown as {
      messages: { role: string; parts: { type: string; text?: string }[] }[]
    }
    return messages.map(({ parts }) => parts.map(({ text }) => text ?? '').join(''))
  }
  const ask = async (text: string) => {
    const messages = [{ id: `m ${text}`, role: 'user', parts: [{ type: 'text', text }] }]
    await (await office.send('/chat/teller', 'ada', { id: 'c1', messages })).text()
  }
  await ask('First?')
  await ask('Second?')
  expect(await edit('pop', {})).toEqual(['First?', 'One.', 'Second?'])
  expect(await edit('pop', {})).toEqual(['First?', 'One.'])
  const more = [
    { role: 'user', content: 'By phone?' },
    { role: 'assistant', content: 'Yes.' },
  ]
  expect(await edit('messages', { messages: more })).toEqual(['First?', 'One.', 'By phone?', 'Yes.'])
  await ask('Third?')
  expect(await edit('pop', {})).toEqual(['First?', 'One.', 'By phone?', 'Yes.', 'Third?'])
  expect(await edit('pop', {})).toEqual(['First?', 'One.', 'By phone?', 'Yes.'])
  expect(await edit('clear', {})).toEqual([])
  expect(office.reported).toEqual([])
})

it('a page edits its chat through the transport', async () => {
  const office = await openOffice({ agents: [tellingAgent('teller', 'One.')] })
  const transport = transportOf(office, 'teller')
  const chat = new PageChat('c1', transport)
  await chat.sendMessage({ text: 'First?' })
  await transport.append('c1', [{ role: 'user', content: 'By phone.' }])
  await transport.branch('c1', 'c2')
  await transport.pop('c1')
  const shown = async (id: string) => (await transport.messages(id)).messages.map(textIn)
  expect([await shown('c1'), await shown('c2')]).toEqual([
    ['First?', 'One.'],
    ['First?', 'One.', 'By phone.'],
  ])
  await transport.clear('c1')
  expect(await shown('c1')).toEqual([])
  await expect(transport.clear('none')).rejects.toThrow('session_not_found')
  await transport.append('c3', [{ role: 'assistant', content: 'How can I help?' }])
  expect(await shown('c3')).toEqual(['How can I help?'])
})
