import { describe, expect, it } from 'vitest'
import { defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { documentAt, exampleOf, operationsOf, type DescribedOperation } from './kit/described.ts'
import { answerOf, openOffice, payingAgent, tellingAgent } from './kit/office.ts'
import { temporaryLedger } from './kit/temporary-ledger.ts'

/** An agent whose tool leaves its call to be settled. */
function deferringAgent({ asks = false } = {}): ReturnType<typeof payingAgent> {
  const pay = testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: asks ? 'ask' : 'run' }),
    run: (_, report) => {
      report.defer('payment-1')
      return ''
    },
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: { usd: 5 } }] }, { text: 'Paid.' }])
  return defineAgent({ name: 'cashier', instructions: 'Pay.', model, tools: [pay] })
}

interface StoppedRun {
  readonly pendingApprovals: readonly { readonly toolCallId: string }[]
  readonly deferredCalls: readonly { readonly toolCallId: string }[]
}

/** An agent whose run is in the state in which an operation is of use. */
function agentFor(operationId: string): ReturnType<typeof payingAgent> {
  if (operationId === 'settleRun') return deferringAgent()
  // Of a run that waits, nothing of its session could be edited.
  if (
    ['giveFeedback', 'appendToSession', 'popSession', 'clearSession', 'branchSession'].includes(
      operationId,
    ) ||
    operationId === 'withdrawFromSession'
  )
    return tellingAgent('cashier', 'One.')
  if (operationId === 'withdrawRun') return deferringAgent({ asks: true })
  return operationId === 'createChatCompletion'
    ? tellingAgent('cashier', 'One.', 'Two.')
    : payingAgent('cashier')
}

/** Sends a request as the document describes it, about a run that waits, and returns the response. */
async function sendAsDescribed(
  path: string,
  method: string,
  operation: DescribedOperation,
): Promise<Response> {
  const agents = [agentFor(operation.operationId)]
  const ledger = operation.operationId === 'readRecord' ? temporaryLedger() : memoryLedger()
  const office = await openOffice({ agents, ledger, inspector: true })
  const runId = await office.start('boss', { sessionId: 'chat-0' })
  const waiting = await office.send(`/runs/${runId}/result?waitMs=20000`)
  const { pendingApprovals, deferredCalls } = (await waiting.json()) as StoppedRun
  const [call] = [...pendingApprovals, ...deferredCalls]
  if (operation.operationId === 'withdrawRun') {
    const standing = { for: 'session', expiresInMs: 60_000 }
    await office.send(`/runs/${runId}/approve`, 'boss', { toolCallId: call?.toolCallId, standing })
  }
  const example = exampleOf(operation)
  const isOfSchedule = operation.operationId === 'scheduleRun'
  const set = isOfSchedule
    ? await office.send('/schedules', 'boss', { agent: 'cashier', input: 'Pay.', every: 60_000 })
    : undefined
  const { scheduleId } = ((await set?.json()) as { readonly scheduleId?: string }) ?? {}
  const body = example && {
    ...example,
    ...('toolCallId' in example && { toolCallId: call?.toolCallId }),
    ...(operation.operationId === 'withdrawRun' && { standing: call?.toolCallId }),
    ...(operation.operationId === 'driveRun' && { runId }),
  }
  expect(body === undefined).toBe(method === 'get')
  const names: Readonly<Record<string, string>> = {
    run: scheduleId ?? runId,
    agent: 'cashier',
    session: 'chat-0',
    chat: 'chat-0',
    model: 'cashier',
    name: 'paid',
  }
  const place = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name] ?? '')
  const query = operation.operationId === 'diffRuns' ? `?with=${runId}` : ''
  return await office.send(`${place}${query}`, operation.operationId === 'driveRun' ? 'driver' : 'boss', body)
}

const document = await documentAt('')
const described = operationsOf(document)
/** With all that a server can be given. */
const whole = await documentAt('', {
  approvalPage: { secret: 's'.repeat(32), url: 'https://ops.example.com' },
})

describe('the OpenAPI document', () => {
  it('is the one of this package, the same for every caller', async () => {
    // After a wanted change: vitest run packages/server/test/openapi.spec.ts -u
    await expect(`${JSON.stringify(whole, null, 2)}\n`).toMatchFileSnapshot('../openapi.json')
    expect(document.openapi).toMatch(/^3\.1\./)
    expect(await documentAt('/api')).toEqual({ ...document, servers: [{ url: '/api' }] })
    const office = await openOffice()
    expect(await answerOf(await office.send('/openapi.json', 'ada'))).toEqual({ ...document, status: 200 })
    expect((await office.send('/openapi.json', 'stranger')).status).toBe(401)
    expect(office.reported).toEqual([])
  })

  it('names each operation once, and refers to nothing that it does not hold', () => {
    const all = operationsOf(whole)
    const ids = all.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    const refs = [...JSON.stringify(whole).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, ref]) => ref ?? '')
    expect(refs.length).toBeGreaterThan(all.length)
    for (const ref of refs) {
      const found = ref
        .split('/')
        .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], whole)
      expect({ ref, found: typeof found }).toEqual({ ref, found: 'object' })
    }
    for (const { path, operation } of all) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const passed = operation.parameters.flatMap((each) => (each.in === 'path' ? [each.name] : []))
      expect(passed).toEqual(inPath)
    }
  })

  it.each(described.map((each) => [`${each.method} ${each.path}`, each] as const))(
    'has a request of %s that a server answers as described',
    async (_, { path, method, operation }) => {
      const response = await sendAsDescribed(path, method, operation)
      expect({ status: response.status, text: response.ok ? '' : await response.text() }).toMatchObject({
        text: '',
      })
      expect(Object.keys(operation.responses)).toContain(String(response.status))
      const type = response.headers.get('content-type')?.split(';')[0]
      const media = operation.responses[response.status]?.content ?? {}
      expect(Object.keys(media)).toEqual(expect.arrayContaining(type === undefined ? [] : [type]))
      const isJson = type === 'application/json'
      const answer = isJson ? ((await response.json()) as object) : await response.body?.cancel()
      const fields = isJson ? media[type]?.schema.required : []
      expect(Object.keys(answer ?? {})).toEqual(expect.arrayContaining([...(fields ?? [])]))
    },
  )

  it('describes a refused request as a problem', async () => {
    const office = await openOffice()
    const { components } = document
    for (const { path, method, operation } of described.filter((each) => each.method === 'post')) {
      const [[type, media] = []] = Object.entries(operation.responses['default']?.content ?? {})
      const name = media?.schema.$ref?.split('/').at(-1) ?? ''
      const { required } = components.schemas[name] as { required: readonly string[] }
      const place = path
        .replaceAll('{agent}', 'office')
        .replaceAll('{run}', 'none')
        .replaceAll('{name}', '%20')
      const response = await office.send(place, 'boss', { unknown: true })
      expect(response.headers.get('content-type'), `${method} ${path}`).toBe(type)
      expect(Object.keys((await response.json()) as object)).toEqual(expect.arrayContaining([...required]))
    }
  })
})
