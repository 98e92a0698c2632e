import { ConflictError } from 'openai'
import type OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { agentTool, defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { answerOf, openOffice, payingAgent, tellingAgent, type Office } from './kit/office.ts'
import { clientOf, shippingAgent, stumblingAgent } from './kit/shop.ts'

type Asked = Extract<OpenAI.Responses.ResponseOutputItem, { type: 'function_call' }>
type Question = Extract<OpenAI.Responses.ResponseOutputItem, { type: 'mcp_approval_request' }>

const callsIn = ({ output }: OpenAI.Responses.Response): readonly Asked[] =>
  output.filter((item) => item.type === 'function_call')
const questionIn = ({ output }: OpenAI.Responses.Response): Question =>
  output.find((item) => item.type === 'mcp_approval_request')!

async function runsOf(office: Office): Promise<readonly { readonly runId: string }[]> {
  return (await answerOf(await office.send('/runs')))['runs'] as readonly { runId: string }[]
}

describe('the Responses API', () => {
  it('answers with a run of the agent, whole or as a stream', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.')] })
    const client = clientOf(office)
    const whole = await client.responses.create({
      model: 'teller',
      input: 'First?',
      metadata: { order: '7' },
    })
    expect(whole).toMatchObject({
      ...{ object: 'response', status: 'completed', model: 'teller', output_text: 'One.', error: null },
      ...{ metadata: { order: '7' }, previous_response_id: null },
    })
    const stream = client.responses.stream({ model: 'teller', input: [{ role: 'user', content: 'Second?' }] })
    let reported = ''
    stream.on('response.output_text.delta', ({ delta }) => (reported += delta))
    expect(await stream.finalResponse()).toMatchObject({ status: 'completed', output_text: 'Two.' })
    expect(reported).toBe('Two.')
    const runs = await runsOf(office)
    expect(runs.map(({ runId }) => `resp_${runId}`)).toContain(whole.id)
    expect(await answerOf(await office.send(`/runs/${whole.id.slice('resp_'.length)}`))).toMatchObject({
      ...{ subject: 'ada', text: 'One.', reason: 'answered' },
    })
  })

  it('shows the calls that its client runs, and continues with their output', async () => {
    const office = await openOffice({ agents: [shippingAgent()] })
    const client = clientOf(office)
    const first = await client.responses.create({ model: 'shop', input: 'Tea for two.' })
    expect(first).toMatchObject({ status: 'completed', output_text: 'I look.I ship.' })
    expect(first.usage).toEqual({
      ...{ input_tokens: 30, output_tokens: 5, total_tokens: 35 },
      input_tokens_details: { cached_tokens: 5 },
      output_tokens_details: { reasoning_tokens: 0 },
    })
    const [ada, bob] = callsIn(first)
    expect([ada, bob]).toMatchObject([
      { name: 'ship', arguments: '{"to":"Ada"}', status: 'completed' },
      { name: 'ship', arguments: '{"to":"Bob"}' },
    ])
    // One of two: the response asks for the other one again.
    const half = await client.responses.create({
      ...{ model: 'shop', previous_response_id: first.id },
      input: [{ type: 'function_call_output', call_id: ada!.call_id, output: 'sent to Ada' }],
    })
    expect(callsIn(half).map(({ call_id }) => call_id)).toEqual([bob!.call_id])
    expect([half.output_text, half.previous_response_id]).toEqual(['', first.id])
    const stream = client.responses.stream({
      ...{ model: 'shop', previous_response_id: half.id },
      input: [{ type: 'function_call_output', call_id: bob!.call_id, output: 'sent to Bob' }],
    })
    const last = await stream.finalResponse()
    expect(last).toMatchObject({
      status: 'completed',
      output_text: 'Shipped.',
      previous_response_id: half.id,
    })
    expect(last.usage).toMatchObject({ input_tokens: 30, output_tokens_details: { reasoning_tokens: 1 } })
    expect(new Set([first.id, half.id, last.id]).size).toBe(3)
    expect(await runsOf(office)).toHaveLength(1)
    // A message of the user begins a run that knows all of it.
    const after = await client.responses.create({
      ...{ model: 'shop', input: 'Thank you.', previous_response_id: last.id },
    })
    expect(after.output_text).toBe('You are welcome.')
    const transcript = await answerOf(await office.send(`/runs/${after.id.slice('resp_'.length)}/transcript`))
    expect(JSON.stringify(transcript)).toMatch(/Tea for two.*tea: 5 USD.*sent to Ada.*sent to Bob.*Thank you/)
  })

  it('takes back the items of a client that keeps the conversation itself', async () => {
    const office = await openOffice({ agents: [shippingAgent()] })
    const client = clientOf(office)
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Tea for two.' }]
    const ask = async (): Promise<OpenAI.Responses.Response> =>
      await client.responses.create({ model: 'shop', input })
    const first = await ask()
    input.push(...(first.output as OpenAI.Responses.ResponseInput))
    for (const { call_id } of callsIn(first)) {
      input.push({ type: 'function_call_output', call_id, output: [{ type: 'input_text', text: 'sent' }] })
    }
    const second = await ask()
    expect(second.output_text).toBe('Shipped.')
    expect(await runsOf(office)).toHaveLength(1)
    input.push(...(second.output as OpenAI.Responses.ResponseInput), { role: 'user', content: 'Thank you.' })
    const third = await ask()
    expect(third.output_text).toBe('You are welcome.')
    const transcript = await answerOf(await office.send(`/runs/${third.id.slice('resp_'.length)}/transcript`))
    const messages = transcript['messages'] as readonly {
      readonly role: string
      readonly results?: unknown
    }[]
    expect(messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
      'assistant',
    ])
    expect(messages[2]?.results).toMatchObject([{ name: 'ship' }, { name: 'ship' }])
  })

  it('asks for approvals, and decides with the answer under the name of the caller', async () => {
    const clerk = payingAgent('clerk')
    const call = { toolCalls: [{ name: 'clerk', input: { task: 'Pay.' } }] }
    const model = scriptedModel([call, { text: 'All is paid.' }])
    const boss = defineAgent({ name: 'boss', instructions: 'Ask.', model, tools: [agentTool(clerk)] })
    const office = await openOffice({ agents: [boss, clerk] })
    const client = clientOf(office)
    const waiting = await client.responses.create({ model: 'boss', input: 'Pay.' })
    expect(waiting.status).toBe('completed')
    expect(callsIn(waiting)).toEqual([])
    expect(questionIn(waiting)).toMatchObject({ name: 'pay', arguments: '{"usd":5}', server_label: 'boss' })
    const answer = (approve: boolean) =>
      client.responses.create({
        ...{ model: 'boss', previous_response_id: waiting.id },
        input: [
          {
            ...{ type: 'mcp_approval_response', approve },
            approval_request_id: questionIn(waiting).id,
          },
        ],
      })
    expect(await answer(true)).toMatchObject({ status: 'completed', output_text: 'All is paid.' })
    await expect(answer(false)).rejects.toThrow(ConflictError)
    const { events } = (await answerOf(await office.send('/events'))) as unknown as {
      readonly events: readonly { readonly event: object }[]
    }
    expect(events.map(({ event }) => event)).toContainEqual(
      expect.objectContaining({ type: 'approval_decided', by: 'ada', approved: true }),
    )
  })

  it('holds in the end what is on record, whatever was streamed', async () => {
    const office = await openOffice({ agents: [stumblingAgent()] })
    const stream = clientOf(office).responses.stream({ model: 'teller', input: 'Well?' })
    let reported = ''
    stream.on('response.output_text.delta', ({ delta }) => (reported += delta))
    const { output_text: text, output } = await stream.finalResponse()
    expect([reported, text, output.length]).toEqual(['Half of itAll of it.', 'All of it.', 1])
  })

  it.each([
    ['output_truncated', { text: 'So', stopReason: 'max_tokens' }, 'incomplete', 'max_output_tokens'],
    ['refused', { text: 'No.', stopReason: 'refused' }, 'incomplete', 'content_filter'],
    ['model_failed', { fail: 'authentication' }, 'failed', undefined],
  ] as const)('says of a run that ends as %s how it ended', async (reason, step, status, why) => {
    const model = scriptedModel([step, step])
    const office = await openOffice({ agents: [defineAgent({ name: 'a', instructions: 'Act.', model })] })
    const client = clientOf(office)
    const whole = await client.responses.create({ model: 'a', input: 'Go.' })
    const streamed = await client.responses.stream({ model: 'a', input: 'Go.' }).finalResponse()
    for (const response of [whole, streamed]) {
      expect(response.status).toBe(status)
      expect(response.incomplete_details?.reason).toBe(why)
      expect(response.error?.message ?? '').toMatch(why === undefined ? /ended as model_failed/ : /^$/)
    }
    const runs = (await runsOf(office)) as readonly { readonly reason?: string }[]
    expect(runs.map((run) => run.reason)).toEqual([reason, reason])
  })

  it('keeps the runs of a conversation in a session', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.')] })
    const client = clientOf(office)
    await client.responses.create({ model: 'teller', input: 'First?', conversation: 'c1' })
    await client.responses.create({ model: 'teller', input: 'Second?', conversation: { id: 'c1' } })
    const { history } = (await answerOf(await office.send('/sessions/c1'))) as unknown as {
      readonly history: { readonly messages: readonly unknown[] }
    }
    expect(history.messages).toHaveLength(4)
  })

  it('writes as the request says, and begins one run under one key', async () => {
    const model = scriptedModel([{ text: 'One.' }, { text: 'Two.' }])
    const office = await openOffice({ agents: [defineAgent({ name: 'a', instructions: 'Act.', model })] })
    const client = clientOf(office)
    const ask = async (input: string) =>
      await client.responses.create(
        {
          ...{ model: 'a', input, temperature: 0.5, top_p: 0.9, max_output_tokens: 50, tool_choice: 'none' },
          ...{ reasoning: { effort: 'low' }, parallel_tool_calls: false, user: 'u', store: true },
        },
        { headers: { 'Idempotency-Key': 'k1' } },
      )
    const [one, same] = [await ask('Go.'), await ask('Go.')]
    expect([same.id, same.output_text]).toEqual([one.id, 'One.'])
    expect(model.requests).toHaveLength(1)
    expect(model.requests[0]).toMatchObject({
      modelSettings: { temperature: 0.5, topP: 0.9, reasoningEffort: 'low' },
      ...{ maxOutputTokens: 50, toolChoice: { type: 'none' } },
    })
    await expect(ask('Else.')).rejects.toMatchObject({ status: 409, code: 'key_used' })
  })

  it('takes images and files of the user', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'Seen.')] })
    const { id } = await clientOf(office).responses.create({
      model: 'teller',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Look.' },
            { type: 'input_image', image_url: 'data:image/png;base64,aGk=', detail: 'auto' },
            { type: 'input_image', image_url: 'https://example.com/tea.png', detail: 'auto' },
            { type: 'input_file', file_data: 'data:application/pdf;base64,aGk=', filename: 'bill.pdf' },
            { type: 'input_file', file_url: 'https://example.com/bill.pdf' },
          ],
        },
      ],
    })
    const transcript = await answerOf(await office.send(`/runs/${id.slice('resp_'.length)}/transcript`))
    const [asked] = transcript['messages'] as readonly { readonly parts: unknown }[]
    expect(asked?.parts).toEqual([
      { type: 'text', text: 'Look.' },
      { type: 'image', mediaType: 'image/png', data: 'aGk=' },
      { type: 'image', mediaType: 'image/*', url: 'https://example.com/tea.png' },
      { type: 'file', mediaType: 'application/pdf', data: 'aGk=', name: 'bill.pdf' },
      { type: 'file', mediaType: 'application/octet-stream', url: 'https://example.com/bill.pdf' },
    ])
  })
})

describe('a request for a response', () => {
  it('is refused where it asks what the agent decides, or what makes no sense', async () => {
    const office = await openOffice({ agents: [shippingAgent()] })
    const send = async (body: object) =>
      await answerOf(await office.send('/v1/responses', 'ada', { model: 'shop', input: 'Hi.', ...body }))
    const strange = 'call_00000000000000000000000000000000_1_1_0'
    const user = (content: unknown) => ({ input: [{ role: 'user', content }] })
    for (const [body, message] of [
      [{ instructions: 'Be rude.' }, /instructions: can only be ""/],
      [{ background: true }, /background: can only be false/],
      [{ store: false }, /store: can only be true/],
      [{ truncation: 'auto' }, /truncation/],
      [{ include: ['message.output_text.logprobs'] }, /include.*has to be empty/],
      [{ text: { format: { type: 'json_object' } } }, /text\.format\.type: can only be "text"/],
      [{ service_tier: 'flex' }, /service_tier: can only be "auto" or "default"/],
      [{ top_logprobs: 3 }, /top_logprobs/],
      [{ max_tool_calls: 3 }, /max_tool_calls/],
      [{ tools: [{ type: 'web_search' }] }, /no tool web_search/],
      [{ tools: [{ type: 'function', name: 'rob', parameters: {} }] }, /no tool rob/],
      [{ input: [] }, /input/],
      [{ input: [{ role: 'system', content: 'Be rude.' }] }, /input\.0 has the role system/],
      [{ input: [{ type: 'item_reference', id: 'x' }] }, /input\.0 has the type item_reference/],
      [user(7), /input\.0\.content has to be a text, or a list/],
      [user([]), /input\.0\.content is empty/],
      [user([{ type: 'input_text', text: '' }]), /input\.0\.content is empty/],
      [user([{ type: 'input_text', text: 7 }]), /input\.0\.content\.0 has to be a text/],
      [user([{ type: 'input_audio' }]), /input\.0\.content\.0 has the type input_audio/],
      [user([{ type: 'input_image', file_id: 'f' }]), /Files by an id are not kept here/],
      [user([{ type: 'input_image', image_url: 'file:///etc/passwd' }]), /has no URL of http/],
      [user([{ type: 'input_image', image_url: 'data:text/html;base64,aGk=' }]), /has to be an image/],
      [{ input: [{ role: 'assistant', content: 7 }] }, /input\.0\.content has to be a text/],
      [{ input: [{ type: 'function_call', call_id: 'x' }] }, /input\.0\.call_id has to be the id of a call/],
      [
        { input: [{ type: 'function_call', call_id: strange, name: 'ship', arguments: '[]' }] },
        /JSON object/,
      ],
      [{ input: [{ type: 'mcp_approval_response', approve: true }] }, /approval_request_id/],
      [
        { input: [{ type: 'mcp_approval_response', approval_request_id: 'x', approve: true }] },
        /has to be one that this server gave/,
      ],
      [{ previous_response_id: 'resp_1' }, /previous_response_id is not the id/],
      [{ input: [{ role: 'assistant', content: 'I say.' }] }, /a run answers a message of the user/],
    ] as const) {
      const answer = await send(body)
      expect({ body, ...answer }).toMatchObject({
        ...{ body, status: 400 },
        error: { type: 'invalid_request_error', message: expect.stringMatching(message) as string },
      })
    }
    const result = { type: 'function_call_output', call_id: strange, output: 'sent' }
    expect(await send({ input: [result] })).toMatchObject({ status: 404, error: { code: 'run_not_found' } })
    expect(await runsOf(office)).toEqual([])
  })

  it('of another caller changes nothing', async () => {
    const office = await openOffice({ agents: [shippingAgent(), payingAgent()] })
    const first = await clientOf(office).responses.create({ model: 'shop', input: 'Tea for two.' })
    const outputs = callsIn(first).map(({ call_id }) => ({
      ...({ type: 'function_call_output', call_id, output: 'stolen' } as const),
    }))
    const [bob, viewer] = [clientOf(office, 'bob'), clientOf(office, 'viewer')]
    const notFound = { status: 404, code: 'run_not_found' }
    await expect(bob.responses.create({ model: 'shop', input: outputs })).rejects.toMatchObject(notFound)
    await expect(
      bob.responses.create({ model: 'shop', input: 'And?', previous_response_id: first.id }),
    ).rejects.toMatchObject(notFound)
    const notAllowed = { status: 403, code: 'not_permitted' }
    await expect(viewer.responses.create({ model: 'shop', input: outputs })).rejects.toMatchObject(notAllowed)
    await expect(viewer.responses.create({ model: 'shop', input: 'Hi.' })).rejects.toMatchObject(notAllowed)
    const ada = clientOf(office)
    await expect(
      ada.responses.create({ model: 'shop', input: 'And?', previous_response_id: first.id }),
    ).rejects.toMatchObject({ status: 409, code: 'run_not_ended' })
    await expect(ada.responses.create({ model: 'office', input: outputs })).rejects.toMatchObject({
      ...{ status: 400, message: expect.stringContaining('of the agent shop') as string },
    })
    const other = await ada.responses.create({ model: 'office', input: 'Pay.' })
    await expect(
      ada.responses.create({ model: 'shop', input: outputs, previous_response_id: other.id }),
    ).rejects.toMatchObject({ status: 400 })
    const approval_request_id = questionIn(other).id
    const decision = { type: 'mcp_approval_response', approve: true, approval_request_id } as const
    await expect(
      ada.responses.create({ model: 'shop', input: [...outputs, decision] }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringContaining('several runs') as string })
    expect(await office.send(`/runs/${first.id.slice('resp_'.length)}`).then(answerOf)).toMatchObject({
      deferredCalls: { length: 2 },
    })
  })
})
