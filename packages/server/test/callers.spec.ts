import { describe, expect, it } from 'vitest'
import { createRuntime, memoryLedger } from '@tallystick/core'
import { createServer } from '@tallystick/server'
import { serve } from '@tallystick/server/node'
import { answerOf, openOffice, payingAgent, tellingAgent, type OfficeOptions } from './kit/office.ts'

const stream = { accept: 'text/event-stream' }

describe('what a caller sees', () => {
  it('is its own runs, and no answer tells it that others exist', async () => {
    const office = await openOffice()
    const adas = await office.start('ada', { sessionId: 's1' })
    const missing = '01a20ad2-04d4-72fd-99e7-7861fc19641d'
    const paths: readonly (readonly [path: string, body?: object | undefined, headers?: object])[] = [
      [''],
      ['?at=1'],
      ['/transcript'],
      ['/result'],
      ['/events'],
      ['/events', undefined, stream],
      ['/approve', { toolCallId: 'x' }],
      ['/deny', { toolCallId: 'x', reason: 'no' }],
      ['/cancel', {}],
      ['/steer', { input: 'Hi.' }],
      ['/queue', { input: 'Hi.' }],
      ['/raise', { limit: 'maxTurns', max: 99 }],
      ['/settle', { toolCallId: 'x', result: 'y' }],
      ['/resume', {}],
      ['/fork', { atSeq: 1 }],
    ]
    for (const [path, body, headers] of paths) {
      const theirs = await office.send(`/runs/${adas}${path}`, 'bob', body, { ...headers })
      const none = await office.send(`/runs/${missing}${path}`, 'bob', body, { ...headers })
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

  it('is held to its permissions', async () => {
    const office = await openOffice()
    const runId = await office.start('ada')
    expect((await office.send(`/runs/${runId}`, 'viewer')).status).toBe(200)
    for (const [path, body] of [
      [`/runs`, { agent: 'office', input: 'Hi.' }],
      [`/runs/${runId}/cancel`, {}],
      [`/runs/${runId}/fork`, { atSeq: 1 }],
      [`/runs/${runId}/resume`, {}],
    ] as const) {
      expect(await answerOf(await office.send(path, 'viewer', body))).toMatchObject({
        status: 403,
        code: 'not_permitted',
      })
    }
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

  it('reaches the context of the runs that it starts', async () => {
    const principals: unknown[] = []
    const context: OfficeOptions['context'] = ({ name }) => principals.push(name)
    const office = await openOffice({ context })
    await office.start('ada')
    expect(principals).toEqual(['ada'])
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
