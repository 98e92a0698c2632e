import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  type Client,
} from '@a2a-js/sdk/client'
import { Role, TaskState, type Message, type Part, type StreamResponse, type Task } from '@a2a-js/sdk'
import { describe, expect, it } from 'vitest'
import { defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { answerOf, openOffice, payingAgent, tellingAgent, type Office } from './kit/office.ts'
import { shippingAgent, stumblingAgent } from './kit/shop.ts'

/** A client that has read the card of an agent. */
async function clientOf(office: Office, agent: string, as = 'ada'): Promise<Client> {
  const fetchImpl: typeof fetch = (url, init) =>
    fetch(url, { ...init, headers: { ...(init?.headers as object), authorization: `Bearer ${as}` } })
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  })
  return await factory.createFromUrl(`${office.listening.url}/a2a/${agent}/`)
}

const noPart = { metadata: undefined, filename: '', mediaType: '' }
const text = (value: string): Part => ({ ...noPart, content: { $case: 'text', value } })
const data = (value: object): Part => ({ ...noPart, content: { $case: 'data', value } })

let sent = 0

/** A message of the user, as the client sends it. */
function saying(parts: readonly Part[], more: Partial<Message> = {}) {
  const message: Message = {
    ...{ messageId: `m${++sent}`, contextId: '', taskId: '', role: Role.ROLE_USER, parts: [...parts] },
    ...{ metadata: undefined, extensions: [], referenceTaskIds: [], ...more },
  }
  return { tenant: '', message, configuration: undefined, metadata: undefined }
}

const textIn = (parts: readonly Part[]): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('')

const textsOf = (task: Task): readonly string[] => task.artifacts.map(({ parts }) => textIn(parts))

/** A task as a client puts it together from a stream. */
class FollowedTask {
  id = ''
  readonly states: TaskState[] = []
  readonly #texts = new Map<string, string>()

  get texts(): readonly string[] {
    return [...this.#texts.values()].filter((each) => each !== '')
  }

  take({ payload }: StreamResponse): void {
    if (payload?.$case === 'task') {
      this.id = payload.value.id
      this.states.push(payload.value.status!.state)
      for (const { artifactId, parts } of payload.value.artifacts) this.#texts.set(artifactId, textIn(parts))
    }
    if (payload?.$case === 'statusUpdate') this.states.push(payload.value.status!.state)
    if (payload?.$case !== 'artifactUpdate') return
    const { artifactId, parts } = payload.value.artifact!
    const before = payload.value.append ? (this.#texts.get(artifactId) ?? '') : ''
    this.#texts.set(artifactId, before + textIn(parts))
  }
}

/** The task at the end of a stream. */
async function followed(updates: AsyncIterable<StreamResponse>): Promise<FollowedTask> {
  const task = new FollowedTask()
  for await (const update of updates) task.take(update)
  return task
}

interface Question {
  readonly approvals: readonly {
    readonly approvalId: string
    readonly name: string
    readonly input: object
  }[]
  readonly calls: readonly { readonly toolCallId: string; readonly name: string; readonly input: object }[]
}

/** What a task that needs input asks. */
function questionOf({ status }: Task): Question {
  const content = status?.message?.parts.at(-1)?.content
  return content?.$case === 'data' ? (content.value as Question) : { approvals: [], calls: [] }
}

describe('an agent of A2A', () => {
  it('is found by its card, and answers with a task in a context', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.')] })
    const client = await clientOf(office, 'teller')
    const first = (await client.sendMessage(saying([text('First?')]))) as Task
    expect(first.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
    expect([textsOf(first), first.metadata]).toEqual([
      ['One.'],
      expect.objectContaining({ reason: 'answered' }),
    ])
    const second = await followed(
      client.sendMessageStream(saying([text('Second?')], { contextId: first.contextId })),
    )
    const { TASK_STATE_SUBMITTED, TASK_STATE_WORKING, TASK_STATE_COMPLETED } = TaskState
    expect(second.states).toEqual([TASK_STATE_SUBMITTED, TASK_STATE_WORKING, TASK_STATE_COMPLETED])
    expect(second.texts).toEqual(['Two.'])
    const { runs } = (await answerOf(await office.send(`/sessions/${first.contextId}`))) as unknown as {
      readonly runs: readonly { readonly runId: string }[]
    }
    expect(runs.map(({ runId }) => runId)).toEqual([second.id, first.id])
    expect(await client.getTask({ tenant: '', id: first.id })).toEqual(first)
  })

  it('needs input for an approval, and continues with the decision', async () => {
    const office = await openOffice({ agents: [payingAgent()] })
    const client = await clientOf(office, 'office')
    const waiting = (await client.sendMessage(saying([text('Pay.')]))) as Task
    expect(waiting.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED)
    const { approvals, calls } = questionOf(waiting)
    expect([approvals, calls]).toMatchObject([[{ name: 'pay', input: { usd: 5 } }], []])
    const { approvalId } = approvals[0]!
    const decided = saying([data({ approvalId, approved: true })], { taskId: waiting.id })
    const paid = (await client.sendMessage(decided)) as Task
    expect([paid.id, textsOf(paid)]).toEqual([waiting.id, ['I pay. ', 'Payment: 5 USD paid']])
    const { events } = (await answerOf(await office.send(`/runs/${waiting.id}/events`))) as unknown as {
      readonly events: readonly object[]
    }
    expect(events).toContainEqual(expect.objectContaining({ type: 'approval_decided', by: 'ada' }))
    await expect(client.sendMessage(saying([text('And?')], { taskId: paid.id }))).rejects.toThrow(/has ended/)
  })

  it('leaves calls to its client, and streams the rest of the task', async () => {
    const office = await openOffice({ agents: [shippingAgent()] })
    const client = await clientOf(office, 'shop')
    const waiting = (await client.sendMessage(saying([text('Tea for two.')]))) as Task
    const { calls } = questionOf(waiting)
    expect(calls).toMatchObject([{ name: 'ship', input: { to: 'Ada' } }, { input: { to: 'Bob' } }])
    const results = calls.map(({ toolCallId }) => data({ toolCallId, result: 'sent' }))
    const rest = await followed(client.sendMessageStream(saying(results, { taskId: waiting.id })))
    expect([rest.id, rest.texts]).toEqual([waiting.id, ['I look.', 'I ship.', 'Shipped.']])
    expect(rest.states.at(-1)).toBe(TaskState.TASK_STATE_COMPLETED)
  })

  it('takes text back that is void', async () => {
    const office = await openOffice({ agents: [stumblingAgent()] })
    const client = await clientOf(office, 'teller')
    expect((await followed(client.sendMessageStream(saying([text('Well?')])))).texts).toEqual(['All of it.'])
  })

  it('is followed, steered and cancelled while it works', async () => {
    const model = scriptedModel([{ text: 'Slowly', hang: true }])
    const office = await openOffice({ agents: [defineAgent({ name: 'a', instructions: 'Act.', model })] })
    const client = await clientOf(office, 'a')
    const params = {
      ...saying([text('Go.')]),
      configuration: {
        returnImmediately: true,
        acceptedOutputModes: [],
        taskPushNotificationConfig: undefined,
      },
    }
    const begun = (await client.sendMessage(params)) as Task
    expect([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING]).toContain(begun.status?.state)
    // The same message again is the same task.
    expect(await client.sendMessage(params)).toMatchObject({ id: begun.id })
    const following = followed(client.resubscribeTask({ tenant: '', id: begun.id }))
    const steering = client.sendMessage({
      ...saying([text('Faster.')], { taskId: begun.id }),
      configuration: params.configuration,
    })
    expect(await steering).toMatchObject({ id: begun.id })
    const cancelled = await client.cancelTask({ tenant: '', id: begun.id, metadata: undefined })
    expect(cancelled.status?.state).toBe(TaskState.TASK_STATE_CANCELED)
    expect((await following).states.at(-1)).toBe(TaskState.TASK_STATE_CANCELED)
    for (const late of [
      client.cancelTask({ tenant: '', id: begun.id, metadata: undefined }),
      followed(client.resubscribeTask({ tenant: '', id: begun.id })),
    ]) {
      await expect(late).rejects.toThrow(/has ended/)
    }
  })

  it.each([
    ['refused', { text: 'No.', stopReason: 'refused' }, TaskState.TASK_STATE_REJECTED],
    ['model_failed', { fail: 'authentication' }, TaskState.TASK_STATE_FAILED],
  ] as const)('tells that its run ended as %s', async (reason, step, state) => {
    const model = scriptedModel([step])
    const office = await openOffice({ agents: [defineAgent({ name: 'a', instructions: 'Act.', model })] })
    const task = (await (await clientOf(office, 'a')).sendMessage(saying([text('Go.')]))) as Task
    expect([task.status?.state, task.metadata]).toEqual([state, expect.objectContaining({ reason })])
  })

  it('takes files, and no message without any words', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'Seen.')] })
    const client = await clientOf(office, 'teller')
    const raw: Part = {
      ...noPart,
      content: { $case: 'raw', value: Buffer.from('hi') },
      mediaType: 'image/png',
    }
    const url: Part = {
      ...noPart,
      content: { $case: 'url', value: 'https://example.com/a.pdf' },
      filename: 'a.pdf',
    }
    const { id } = (await client.sendMessage(saying([raw, url]))) as Task
    const { messages } = (await answerOf(await office.send(`/runs/${id}/transcript`))) as unknown as {
      readonly messages: readonly { readonly parts: unknown }[]
    }
    expect(messages[0]?.parts).toEqual([
      { type: 'image', mediaType: 'image/png', data: 'aGk=' },
      {
        type: 'file',
        mediaType: 'application/octet-stream',
        url: 'https://example.com/a.pdf',
        name: 'a.pdf',
      },
    ])
    await expect(client.sendMessage(saying([data({ toolCallId: 'x', result: 'y' })]))).rejects.toThrow(
      /neither a text nor a file/,
    )
    await expect(client.sendMessage(saying([data({ sure: true })]))).rejects.toThrow(
      /A part of data has to be/,
    )
    await expect(client.sendMessage(saying([]))).rejects.toThrow(/message\.parts/)
  })

  it('of another caller, or another agent, is not found', async () => {
    const office = await openOffice({ agents: [payingAgent(), tellingAgent('teller')] })
    const task = (await (await clientOf(office, 'office')).sendMessage(saying([text('Pay.')]))) as Task
    const named = { tenant: '', id: task.id, metadata: undefined }
    const { approvalId } = questionOf(task).approvals[0]!
    for (const [agent, as] of [
      ['office', 'bob'],
      ['teller', 'ada'],
    ] as const) {
      const client = await clientOf(office, agent, as)
      const decided = saying([data({ approvalId, approved: true })], { taskId: task.id })
      for (const asked of [client.getTask(named), client.cancelTask(named), client.sendMessage(decided)]) {
        await expect(asked).rejects.toMatchObject({ name: 'TaskNotFoundError' })
      }
    }
    const viewer = await clientOf(office, 'office', 'viewer')
    await expect(viewer.cancelTask(named)).rejects.toThrow(/may read runs/)
    await expect(clientOf(office, 'office', 'stranger')).rejects.toThrow(/401/)
    await expect(clientOf(office, 'none')).rejects.toThrow(/404/)
    const call = { jsonrpc: '2.0', id: 'q', method: 'ListTasks', params: {} }
    expect(await answerOf(await office.send('/a2a/office', 'ada', call))).toMatchObject({
      ...{ status: 200, jsonrpc: '2.0', id: 'q' },
      error: { code: -32_601, data: [{ reason: 'method_not_found' }] },
    })
    expect(await answerOf(await office.send(`/runs/${task.id}`))).toMatchObject({
      pendingApprovals: [{ name: 'pay' }],
    })
  })
})
