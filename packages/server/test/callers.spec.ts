import { createRuntime, defineAgent, memoryLedger, type RunId } from '@tallystick/core'
import { createServer, type Permission, type Principal } from '@tallystick/server'
import { serve } from '@tallystick/server/node'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { permissions } from '../src/http/principal.ts'
import { toApprovalId } from '../src/stream/run-moves.ts'
import {
  answerOf,
  openOffice,
  payingAgent,
  tellingAgent,
  type Office,
  type OfficeOptions,
} from './kit/office.ts'

const stream = { accept: 'text/event-stream' }

describe('what a caller sees', () => {
  it('is its own runs, and no answer tells it that others exist', async () => {
    const office = await openOffice()
    const adas = await office.start('ada', { sessionId: 's1' })
    const missing = '01a20ad2-04d4-72fd-99e7-7861fc19641d'
    for (const [path, headers] of [
      ['?at=1', {}],
      ['/events', stream],
    ] as const) {
      const theirs = await office.send(`/runs/${adas}${path}`, 'bob', undefined, headers)
      const none = await office.send(`/runs/${missing}${path}`, 'bob', undefined, headers)
      const [shown, expected] = [await theirs.text(), await none.text()]
      expect({ path, status: theirs.status, text: shown }).toEqual({
        path,
        status: 404,
        text: expected.replaceAll(missing, adas),
      })
    }
    const cursor = await office.send(`/runs?before=${adas}`, 'bob')
    expect(cursor.status).toBe(404)
    expect(await answerOf(await office.send('/runs', 'bob'))).toEqual({ status: 200, runs: [] })
    expect((await answerOf(await office.send('/runs', 'ada')))['runs']).toMatchObject([{ runId: adas }])
    expect((await answerOf(await office.send('/runs', 'boss')))['runs']).toMatchObject([{ runId: adas }])
  })

  it('leaves out the history of a session of another caller', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'A secret.', 'Told.')] })
    const adas = await office.start('ada', { sessionId: 's1' })
    await office.send(`/runs/${adas}/result?waitMs=20000`)
    const begin = { agent: 'teller', input: 'What was said?' }
    const joined = await office.send('/runs', 'bob', { ...begin, sessionId: 's1' })
    expect(await answerOf(joined)).toMatchObject({ status: 403, code: 'out_of_scope' })
    const branched = await office.send('/runs', 'bob', { ...begin, from: { runId: adas } })
    expect(await answerOf(branched)).toMatchObject({ status: 404, code: 'run_not_found' })
    const named = await office.send('/runs', 'bob', { ...begin, subject: 'ada' })
    expect(await answerOf(named)).toMatchObject({ status: 403, code: 'out_of_scope' })
    const bobs = await office.start('bob')
    const forked = await office.send(`/runs/${bobs}/fork`, 'bob', { atSeq: 2, sessionId: 's1' })
    expect(await answerOf(forked)).toMatchObject({ status: 403, code: 'out_of_scope' })
  })

  it('is bound by the agents and sessions of its scope', async () => {
    const agents = [tellingAgent('one', 'One.', 'One.'), tellingAgent('two', 'Two.')]
    const sees = { agents: ['one'], sessions: (id: string) => id.startsWith('eve/') }
    const office = await openOffice({ agents, authorize: () => ({ name: 'eve', sees }) })
    expect((await answerOf(await office.send('/agents')))['agents']).toMatchObject([{ name: 'one' }])
    expect((await office.send('/agents/two')).status).toBe(404)
    const begin = { agent: 'one', input: 'Hi.' }
    const codes = []
    for (const body of [
      { ...begin, agent: 'two', sessionId: 'eve/1' },
      begin,
      { ...begin, sessionId: 'ada/1' },
      { ...begin, sessionId: 'eve/1' },
    ]) {
      const { code, runId } = await answerOf(await office.send('/runs', 'eve', body))
      codes.push(code ?? typeof runId)
    }
    expect(codes).toEqual(['agent_not_found', 'out_of_scope', 'out_of_scope', 'string'])
  })

  it('is refused where it would be unclear', async () => {
    const slips = [{ name: 'eve', sees: {} }, { name: '', sees: 'everything' }, { name: 'eve' }, 'eve']
    for (const slip of slips) {
      const office = await openOffice({
        authorize: (() => slip) as unknown as OfficeOptions['authorize'] & object,
      })
      const answer = await answerOf(await office.send('/runs'))
      expect({ slip, ...answer }).toMatchObject({ slip, status: 500, code: 'no_principal' })
      expect(office.reported).toHaveLength(1)
    }
  })
})

describe('what a caller does', () => {
  it('is recorded under its own name, whatever the body says', async () => {
    const office = await openOffice()
    const runId = await office.start('ada')
    const result = await office.send(`/runs/${runId}/result?waitMs=20000`, 'ada')
    const { pendingApprovals } = (await result.json()) as { pendingApprovals: { toolCallId: string }[] }
    const toolCallId = pendingApprovals[0]?.toolCallId
    const forged = await office.send(`/runs/${runId}/approve`, 'ada', { toolCallId, by: 'boss' })
    expect(await answerOf(forged)).toMatchObject({ status: 400, code: 'malformed' })
    expect((await office.send(`/runs/${runId}/approve`, 'ada', { toolCallId })).status).toBe(200)
    const events = (await answerOf(await office.send(`/runs/${runId}/events`, 'ada')))['events']
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'approval_decided', by: 'ada', via: 'http' }),
    )
  })

  it('is held to its permissions in every protocol, by what its request does', async () => {
    const allBut = (...names: readonly Permission[]): Permission[] =>
      permissions.filter((each) => !names.includes(each))
    let may: readonly Permission[] = permissions
    const office = await openOffice({ authorize: () => ({ name: 'ada', sees: 'everything', may }) })
    const chat = (body: object): [string, object] => ['/chat/office', { id: 'c1', ...body }]
    const thread = (body: object): [string, object] => [
      '/ag-ui/office',
      { threadId: 'c1', runId: 'r1', messages: [], ...body },
    ]
    const rpc = (method: string, params: object): [string, object] => [
      '/a2a/office',
      { jsonrpc: '2.0', id: 1, method, params },
    ]
    const first = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Pay.' }] }
    const next = { id: 'm2', role: 'user', parts: [{ type: 'text', text: 'Now.' }] }
    const begin = chat({ messages: [first] })
    await (await office.send(begin[0], 'ada', begin[1])).text()
    const [{ runId }] = (await answerOf(await office.send('/runs')))['runs'] as [{ runId: string }]
    const { pendingApprovals } = await answerOf(await office.send(`/runs/${runId}/result`))
    const [question] = pendingApprovals as [Parameters<typeof toApprovalId>[0]]
    const approvalId = toApprovalId(question)
    const deciding = (approved: boolean): object => ({
      messages: [
        {
          id: runId,
          role: 'assistant',
          parts: [{ type: 'tool-pay', state: 'approval-responded', approval: { id: approvalId, approved } }],
        },
      ],
    })
    const resuming = (approved: boolean): object => ({
      resume: [{ interruptId: approvalId, status: 'resolved', payload: { approved } }],
    })
    const a2aMessage = (...parts: readonly object[]): [string, object] =>
      rpc('SendMessage', { message: { messageId: 'm3', role: 'ROLE_USER', taskId: runId, parts } })
    const responding = (approve: boolean): [string, object] => [
      '/v1/responses',
      {
        model: 'office',
        input: [{ type: 'mcp_approval_response', approve, approval_request_id: approvalId }],
      },
    ]
    const { seq } = (await office.ledger.head(runId as RunId))!
    for (const [missing, [path, body]] of [
      // A message takes `start`, whether it joins a run or cancels one.
      ['start', chat({ messages: [next] })],
      ['start', chat({ messages: [first], messageId: 'm1' })],
      ['start', thread({ messages: [{ id: 'm2', role: 'user', content: 'Now.' }] })],
      ['steer', chat({ messages: [next] })],
      ['queue', chat({ messages: [next], whenBusy: 'queue' })],
      ['cancel', chat({ messages: [first], messageId: 'm1' })],
      ['cancel', ['/chat/office/c1/stop', {}]],
      ['approve', chat(deciding(true))],
      ['deny', chat(deciding(false))],
      ['steer', thread({ messages: [{ id: 'm2', role: 'user', content: 'Now.' }] })],
      ['cancel', thread({ messages: [{ id: 'm1', role: 'user', content: 'Pay.' }] })],
      ['cancel', ['/ag-ui/office/c1/stop', {}]],
      ['approve', thread(resuming(true))],
      ['deny', thread(resuming(false))],
      ['steer', a2aMessage({ text: 'Now.' })],
      ['approve', a2aMessage({ data: { approvalId, approved: true } })],
      ['deny', a2aMessage({ data: { approvalId, approved: false } })],
      ['settle', a2aMessage({ data: { toolCallId: question.toolCallId, result: 'paid' } })],
      ['cancel', rpc('CancelTask', { id: runId })],
      ['approve', responding(true)],
      ['deny', responding(false)],
      [
        'settle',
        [
          '/v1/responses',
          {
            model: 'office',
            input: [{ type: 'function_call_output', call_id: question.toolCallId, output: 'paid' }],
          },
        ],
      ],
    ] as const satisfies readonly (readonly [Permission, readonly [string, object]])[]) {
      may = allBut(missing)
      const text = await (await office.send(path, 'ada', body)).text()
      expect({ path, body, text }).toEqual({
        path,
        body,
        text: expect.stringContaining(`but not ${missing} them`),
      })
    }
    await office.runtime.idle()
    expect((await office.ledger.head(runId as RunId))!.seq).toBe(seq)
    expect(office.reported).toEqual([])
  })

  it('is counted by the hook for rates', async () => {
    const seen: string[] = []
    const admit: OfficeOptions['admit'] = (_, { name }) => {
      seen.push(name)
      return seen.length > 1 ? 2.5 : true
    }
    const office = await openOffice({ admit })
    expect((await office.send('/agents')).status).toBe(200)
    const refused = await office.send('/agents', 'ada')
    expect(refused.headers.get('retry-after')).toBe('3')
    expect(await answerOf(refused)).toMatchObject({ status: 429, code: 'too_many_requests' })
    expect(seen).toEqual(['boss', 'ada'])
  })
})

describe('given a run with the context of the one who started it', () => {
  /** An agent whose tools pay, once that is approved, and then read the mail of whoever the context names. */
  function reader(seen: unknown[]) {
    const called = (name: string) =>
      testTool({
        name,
        ...(name === 'pay' && { effect: 'write' as const, check: () => ({ kind: 'ask' as const }) }),
        run: ({ context }) => {
          seen.push(context)
          return 'done'
        },
      })
    const model = scriptedModel([
      { toolCalls: [{ name: 'pay', input: {} }] },
      { toolCalls: [{ name: 'read_mail', input: {} }] },
      { text: 'Read.' },
    ])
    return defineAgent({
      name: 'reader',
      instructions: 'Read.',
      model,
      tools: [called('pay'), called('read_mail')],
    })
  }
  const askOf = async (office: Office, runId: string) => {
    const { pendingApprovals } = await answerOf(
      await office.send(`/runs/${runId}/result?waitMs=20000`, 'ada'),
    )
    return (pendingApprovals as readonly { readonly toolCallId: string }[])[0]?.toolCallId
  }

  it('when another caller decides, then the run continues with the same owner’s', async () => {
    const seen: unknown[] = []
    const asked: unknown[] = []
    const context: OfficeOptions['context'] = async ({ runId, owner, subject }) => {
      asked.push(runId)
      return await Promise.resolve(`mail of ${owner} about ${subject}`)
    }
    const office = await openOffice({ agents: [reader(seen)], context })
    const runId = await office.start('ada')
    const toolCallId = await askOf(office, runId)
    expect((await office.send(`/runs/${runId}/approve`, 'boss', { toolCallId })).status).toBe(200)
    expect(await answerOf(await office.send(`/runs/${runId}/result?waitMs=20000`))).toMatchObject({
      text: 'Read.',
    })
    expect(seen).toEqual(['mail of ada about ada', 'mail of ada about ada'])
    expect(asked).toEqual([runId, runId])
  })

  it('when it cannot be had, then the run waits, its caller is told, and the decision counts later', async () => {
    const seen: unknown[] = []
    let isDown = false
    const context = (): string => {
      if (isDown) throw new Error('no database at 10.0.0.7')
      return 'had'
    }
    const office = await openOffice({ agents: [reader(seen)], context })
    const runId = await office.start('ada')
    const toolCallId = await askOf(office, runId)
    isDown = true
    const answer = await answerOf(await office.send(`/runs/${runId}/approve`, 'boss', { toolCallId }))
    expect(answer).toMatchObject({ status: 503, code: 'context_unavailable' })
    expect(String(answer['detail'])).toContain(`The context of run ${runId} could not be made`)
    expect(JSON.stringify(answer)).not.toContain('10.0.0.7')
    expect(office.reported).toMatchObject([{ cause: { message: 'no database at 10.0.0.7' } }])
    const waiting = (await (await office.send(`/runs/${runId}`)).json()) as object
    expect(waiting).toMatchObject({ status: 'suspended', pendingApprovals: [{ toolCallId }] })
    expect(seen).toEqual([])
    isDown = false
    expect((await office.send(`/runs/${runId}/resume`, 'boss', {})).status).toBe(202)
    expect(await answerOf(await office.send(`/runs/${runId}/result?waitMs=20000`))).toMatchObject({
      text: 'Read.',
    })
    expect(seen).toEqual(['had', 'had'])
  })

  it('when another caller forks it, then the fork runs with the context of that caller', async () => {
    const seen: unknown[] = []
    const context: OfficeOptions['context'] = ({ owner }) => owner
    const office = await openOffice({ agents: [reader(seen)], context })
    const runId = await office.start('ada')
    await askOf(office, runId)
    const forked = await answerOf(await office.send(`/runs/${runId}/fork`, 'boss', { atSeq: 2 }))
    const [started] = (await answerOf(await office.send(`/runs/${String(forked['runId'])}/events`)))[
      'events'
    ] as readonly { readonly owner?: string }[]
    expect(started?.owner).toBe('boss')
  })
})

describe('given a session that two callers begin at the same moment', () => {
  it('when one of them waits for its place, then no run of the other begins with what it said', async () => {
    const texts = Array.from({ length: 60 }, () => 'Yes.')
    const office = await openOffice({ agents: [tellingAgent('office', ...texts)] })
    const statuses = new Set<number>()
    for (let round = 0; round < 15; round++) {
      const sessionId = `s${round}`
      const start = async (as: string, input: string): Promise<void> => {
        const body = { agent: 'office', input, sessionId, whenBusy: 'wait' }
        statuses.add((await office.send('/runs', as, body)).status)
      }
      await Promise.all([
        start('bob', 'Hello.'),
        start('ada', 'My diagnosis.'),
        start('bob', 'What was said?'),
      ])
      const { runs } = await answerOf(await office.send(`/runs?sessionId=${sessionId}`, 'bob'))
      for (const { runId } of runs as readonly { readonly runId: string }[]) {
        await office.send(`/runs/${runId}/result?waitMs=20000`, 'bob')
        const transcript = await (await office.send(`/runs/${runId}/transcript`, 'bob')).text()
        expect(transcript).not.toContain('diagnosis')
      }
    }
    expect(statuses).toEqual(new Set([201, 403]))
  })
})

describe('a server without authorize', () => {
  const open = () => {
    const ledger = memoryLedger()
    const agents = [payingAgent()]
    return createServer({ runtime: createRuntime({ ledger, agents }), ledger, agents })
  }

  it('answers only those who have its token', async () => {
    const server = open()
    await using listening = await serve(server)
    const get = async (authorization?: string): Promise<number> => {
      const response = await fetch(`${listening.url}/agents`, {
        ...(authorization !== undefined && { headers: { authorization } }),
      })
      await response.body?.cancel()
      return response.status
    }
    const token = server.token ?? ''
    expect(token).toMatch(/^[\w-]{32}$/)
    expect(open().token).not.toBe(token)
    expect(await get(`Bearer ${token}`)).toBe(200)
    for (const wrong of [
      undefined,
      '',
      token,
      `Bearer ${token}x`,
      `Bearer ${token.toUpperCase()}`,
      'Bearer ',
    ]) {
      expect(await get(wrong)).toBe(401)
    }
  })

  it('answers under a name of this machine only, and listens nowhere else', async () => {
    const server = open()
    const headers = { authorization: `Bearer ${server.token}` }
    const local = await server.fetch(new Request('http://localhost:80/agents', { headers }))
    expect(local.status).toBe(200)
    const rebound = await server.fetch(new Request('http://evil.example/agents', { headers }))
    expect(await answerOf(rebound)).toMatchObject({ status: 421, code: 'not_loopback' })
    for (const host of [
      '127.0.0.1.evil.example',
      '127.0.0.1@evil.example',
      'localhost.evil.example',
      'a b',
      '0.0.0.0',
    ]) {
      const named = new Request('http://127.0.0.1/agents', { headers: { ...headers, host } })
      expect({ host, ...(await answerOf(await server.fetch(named))) }).toMatchObject({ host, status: 421 })
    }
    await expect(serve(server, { host: '0.0.0.0' })).rejects.toThrow(/can be reached from other machines/)
  })

  it('listens until it is disposed of', async () => {
    const server = open()
    const listening = await serve(server)
    const head = { headers: { authorization: `Bearer ${server.token ?? ''}`, connection: 'close' } }
    expect((await fetch(`${listening.url}/agents`, head)).status).toBe(200)
    await listening[Symbol.asyncDispose]()
    await expect(fetch(`${listening.url}/agents`, head)).rejects.toThrow('fetch failed')
  })

  it('takes no token from a URL', async () => {
    const server = open()
    for (const name of ['token', 'access_token', 'api_key', 'apikey', 'authorization', 'bearer', 'Token']) {
      const response = await server.fetch(new Request(`http://127.0.0.1/agents?${name}=${server.token}`))
      const answer = await answerOf(response)
      expect(answer).toMatchObject({ status: 400, code: 'secret_in_url' })
      expect(JSON.stringify(answer)).not.toContain(server.token)
    }
  })
})

const finance = { sees: 'everything', roles: ['finance'] } as const
const people: Readonly<Record<string, Principal>> = {
  ...{
    olga: { name: 'olga', ...finance },
    ann: { name: 'ann', ...finance },
    ben: { name: 'ben', ...finance },
  },
  carl: { name: 'carl', sees: 'everything', roles: ['sales'] },
}

function openBank(): Promise<Office> {
  const approvers = [{ count: 2, roles: ['finance'] }]
  const pay = testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: 'ask', approvers }),
    run: () => 'paid',
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: { usd: 5 } }] }, { text: 'Paid.' }])
  return openOffice({
    agents: [defineAgent({ name: 'office', instructions: 'Pay.', model, tools: [pay] })],
    authorize: (request) => people[request.headers.get('authorization')?.slice('Bearer '.length) ?? ''],
  })
}

describe('a call that two people have to approve', () => {
  it('is refused to a caller without the role, to the one who started it, and to one person twice', async () => {
    const office = await openBank()
    const runId = await office.start('olga')
    const result = async () => await answerOf(await office.send(`/runs/${runId}/result?waitMs=20000`, 'ann'))
    const [asked] = (await result())['pendingApprovals'] as readonly Record<string, unknown>[]
    expect(asked).toMatchObject({ approvers: [{ count: 2, roles: ['finance'] }] })
    const { toolCallId } = asked!
    const decide = async (as: string, body: object = {}) =>
      await answerOf(await office.send(`/runs/${runId}/approve`, as, { toolCallId, ...body }))
    expect(await decide('carl')).toMatchObject({
      status: 403,
      code: 'not_an_approver',
      detail: expect.stringContaining('one of these roles: finance'),
    })
    expect(await decide('olga')).toMatchObject({ status: 403, code: 'not_an_approver' })
    expect(await decide('carl', { roles: ['finance'] })).toMatchObject({ status: 400, code: 'malformed' })
    expect(await decide('ann')).toMatchObject({ status: 200, accepted: true })
    expect(await decide('ann')).toMatchObject({ status: 409, code: 'approved_before' })
    expect(await result()).toMatchObject({
      pendingApprovals: [{ approvals: [{ by: 'ann', roles: ['finance'] }] }],
    })
    expect(await decide('ben')).toMatchObject({ status: 200 })
    expect(await result()).toMatchObject({ text: 'Paid.' })
  })
})

/** Two tenants that each have a user of one name: the token of a request is the tenant. */
async function openTenants(): Promise<Office> {
  return await openOffice({
    agents: [tellingAgent('teller', 'One.', 'Two.', 'Three.', 'Four.')],
    authorize: (request) => {
      const tenant = request.headers.get('authorization')?.slice('Bearer '.length) ?? ''
      return { name: 'Ann Smith', sees: { subjects: [tenant] } }
    },
  })
}

describe('given two tenants with a user of the same name, when both send the same', () => {
  it('then a key of one is not a key of the other, on every route that takes one', async () => {
    const office = await openTenants()
    const key = { 'idempotency-key': 'k1' }
    const messages = [{ role: 'user', content: 'Hi.' }]
    const bodies: readonly (readonly [path: string, body: object, id: (answer: object) => unknown])[] = [
      ['/runs', { agent: 'teller', input: 'Hi.' }, (answer) => Object(answer).runId],
      ['/v1/chat/completions', { model: 'teller', messages }, (answer) => Object(answer).id],
    ]
    for (const [path, body, idOf] of bodies) {
      const own = { 'idempotency-key': `${key['idempotency-key']}${path}` }
      const send = async (tenant: string) => await answerOf(await office.send(path, tenant, body, own))
      const [one, again, other] = [await send('north'), await send('north'), await send('south')]
      expect([one.status, idOf(again)]).toEqual([other.status, idOf(one)])
      expect(idOf(other)).not.toBe(idOf(one))
    }
  })

  it('then a place in a list of one opens nothing for the other', async () => {
    const office = await openTenants()
    await office.start('north')
    const { after } = await answerOf(await office.send('/events', 'south'))
    expect(after).toMatch(/^sealed:/)
    const at = `/events?after=${encodeURIComponent(String(after))}`
    expect((await office.send(at, 'south')).status).toBe(200)
    expect((await office.send(at, 'west')).status).toBe(400)
  })
})
