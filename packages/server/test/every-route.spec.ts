import { describe, expect, it } from 'vitest'
import type { RunId } from '@tallystick/core'
import { readStart } from '@tallystick/core/internal'
import { permissions } from '@tallystick/server'
import { documentAt, exampleOf, operationsOf } from './kit/described.ts'
import { answerOf, openOffice, payingAgent, tellingAgent, type Office } from './kit/office.ts'

const operations = operationsOf(await documentAt(''))
const named = operations.map((each) => [`${each.method} ${each.path}`, each] as const)
const reading = (name: string): typeof named =>
  named.filter(([, { operation }]) => operation.parameters.some((parameter) => parameter.name === name))

type Headers = Readonly<Record<string, string>>

/** Sends the example of an operation that begins a run, and returns the ids of the runs that there are then. */
async function beginAs(
  office: Office,
  path: string,
  body: object | undefined,
  headers: Headers,
): Promise<RunId[]> {
  const response = await office.send(path.replace('{agent}', 'cashier'), 'boss', body, headers)
  expect({ path, status: response.status }).toMatchObject({ status: response.ok ? response.status : 200 })
  await response.text()
  const ids: RunId[] = []
  for await (const { runId } of office.ledger.runs()) ids.push(runId)
  return ids
}

describe('a route that begins a run', () => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

  it('is only these: a protocol whose requests start runs adds its own', () => {
    expect(reading('traceparent').map(([name]) => name)).toEqual([
      'post /runs',
      'post /chat/{agent}',
      'post /ag-ui/{agent}',
      'post /v1/responses',
      'post /v1/chat/completions',
      'post /a2a/{agent}',
    ])
  })

  it.each(reading('traceparent'))('continues the trace of its caller: %s', async (_, { path, operation }) => {
    const office = await openOffice({ agents: [tellingAgent('cashier', 'Paid.', 'Paid.')] })
    const body = exampleOf(operation)
    const [first] = await beginAs(office, path, body, { traceparent })
    expect((await readStart(office.ledger, first!))?.labels).toEqual({ traceId: traceparent })
    const another = await openOffice({ agents: [tellingAgent('cashier', 'Paid.')] })
    const [second] = await beginAs(another, path, body, { traceparent: 'no trace' })
    expect((await readStart(another.ledger, second!))?.labels).toBe(undefined)
  })

  const once = reading('Idempotency-Key').filter((each) => reading('traceparent').includes(each))
  it.each(once)(
    'begins one under a key, whatever the trace of the second request: %s',
    async (_, described) => {
      const office = await openOffice({ agents: [tellingAgent('cashier', 'Paid.')] })
      const { path, operation } = described
      const key = { 'idempotency-key': 'k1' }
      expect(await beginAs(office, path, exampleOf(operation), { ...key, traceparent })).toHaveLength(1)
      expect(await beginAs(office, path, exampleOf(operation), key)).toHaveLength(1)
      expect(office.reported).toEqual([])
    },
  )
})

describe('what a caller does not see', () => {
  const missing = { run: '01a20ad2-04d4-72fd-99e7-7861fc19641d', session: 'no-session', agent: 'no-agent' }
  /** Those that name what they are about. What the others answer is in tests of their own. */
  const naming = named.filter(
    ([name, { operation }]) =>
      (name.includes('{') || exampleOf(operation) !== undefined) &&
      // An event is for all runs that wait for it, and names none.
      !name.includes('/signals/'),
  )

  it.each(naming)('is answered like what does not exist: %s', async (_, { path, method, operation }) => {
    const sees = { agents: ['teller'], sessions: ['eve'], subjects: ['eve'] }
    const eve = { name: 'eve', sees, may: permissions }
    const office = await openOffice({
      agents: [payingAgent('cashier'), tellingAgent('teller', 'Hi.')],
      authorize: (request) =>
        request.headers.get('authorization') === 'Bearer eve' ? eve : { name: 'ada', sees: 'everything' },
    })
    const run = await office.start('ada', { sessionId: 'adas-chat', subject: 'ada' })
    await office.send(`/runs/${run}/result?waitMs=20000`, 'ada')
    const askFor = async (names: typeof missing): Promise<{ status: number; text: string }> => {
      const place = path
        .replace('{run}', names.run)
        .replace(/\{(session|chat)\}/, names.session)
        .replace(/\{(agent|model)\}/, names.agent)
      const text = JSON.stringify(exampleOf(operation))
        ?.replaceAll('cashier', names.agent)
        .replaceAll('0190a0d2-04d4-72fd-99e7-7861fc19641d', names.run)
      const body = text === undefined ? undefined : (JSON.parse(text) as object)
      const response = await office.send(place, 'eve', method === 'get' ? undefined : body)
      let shown = await response.text()
      for (const [name, value] of Object.entries(names)) shown = shown.replaceAll(value, `{${name}}`)
      return { status: response.status, text: shown.slice(0, 1_000) }
    }
    const asked = await askFor({ run, session: 'adas-chat', agent: 'cashier' })
    expect(asked).toEqual(await askFor(missing))
    expect(asked.status).toBe(404)
    // With an agent that the caller does see, where the path names something else, too.
    const own = { run, session: 'adas-chat', agent: path.includes('{chat}') ? 'teller' : 'no-agent' }
    expect(await askFor(own)).toEqual(await askFor({ ...missing, agent: own.agent }))
    expect(office.reported).toEqual([])
  })

  it('is nothing that a command could change', async () => {
    const office = await openOffice()
    const run = await office.start('ada')
    const before = await answerOf(await office.send(`/runs/${run}/result?waitMs=20000`))
    for (const { path, method, operation } of operations.filter((each) =>
      each.path.startsWith('/runs/{run}'),
    )) {
      if (method === 'post') await office.send(path.replace('{run}', run), 'bob', exampleOf(operation))
    }
    expect((await answerOf(await office.send(`/runs/${run}`)))['seq']).toBe(before['seq'])
  })
})

describe('what a caller that may only read sends', () => {
  const sending = named.filter(([, { method }]) => method === 'post')

  it.each(sending)('is refused, and changes nothing: %s', async (_, { path, operation }) => {
    const office = await openOffice({ agents: [payingAgent('cashier')] })
    const run = await office.start('boss', { sessionId: 'a-chat' })
    await office.send(`/runs/${run}/result?waitMs=20000`)
    const recorded = async (): Promise<unknown[]> => {
      const heads: unknown[] = []
      for await (const { runId } of office.ledger.runs()) {
        heads.push([runId, await office.ledger.head(runId), await office.ledger.inbox(runId)])
      }
      return heads
    }
    const before = await recorded()
    expect((await office.send(`/runs/${run}`, 'viewer')).status).toBe(200)
    const place = path.replace('{run}', run).replace('{chat}', 'a-chat').replace('{agent}', 'cashier')
    const response = await office.send(place, 'viewer', exampleOf(operation))
    // JSON-RPC of A2A answers errors with status 200.
    const status = path.startsWith('/a2a/') ? 200 : 403
    expect({ status: response.status, text: await response.text() }).toEqual({
      status,
      text: expect.stringContaining('"not_permitted"'),
    })
    await office.runtime.idle()
    expect(await recorded()).toEqual(before)
    expect(office.reported).toEqual([])
  })
})
