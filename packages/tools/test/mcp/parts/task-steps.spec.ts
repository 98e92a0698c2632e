// How a call that runs as a task is followed, over a client that answers what a test wants.
import * as sdk from '@modelcontextprotocol/client'
import { type ManualClock, manualClock } from '@tallystick/testkit'
import type { Json } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { callAsTask, isRunAsTask, type TaskParts } from '../../../src/mcp/call.ts'
import type { OpenedClient } from '../../../src/mcp/client.ts'
import type { ListedTool } from '../../../src/mcp/listing.ts'
import { findKnownSecrets } from '../../../src/mcp/secrets.ts'
import { tick } from '../connected.ts'

const secret = 'swordfish-0123456789'
const options = { command: 'x', secrets: [secret] }
const result = { content: [{ type: 'text', text: 'worked' }] }
const lost = new sdk.SdkError(sdk.SdkErrorCode.ConnectionClosed, 'closed')
const never = new Promise<never>(() => {})

/** What is said to a request, one after the other; the last one is repeated. */
type Says = readonly unknown[]

function stage({
  states = [],
  results = [result],
  created = { status: 'working' },
  quietMs = 60_000,
}: { states?: Says; results?: Says; created?: unknown; quietMs?: number } = {}) {
  const clock: ManualClock = manualClock()
  const asked: { method: string; params: Record<string, unknown>; options: sdk.RequestOptions }[] = []
  const left = { 'tasks/get': [...states], 'tasks/result': [...results] }
  const task = { taskId: 't', ttl: null, pollInterval: 100 }
  const client = {
    getServerCapabilities: () => undefined,
    request: async (
      { method, params }: { method: string; params: Record<string, unknown> },
      _schema: unknown,
      given: sdk.RequestOptions,
    ) => {
      asked.push({ method, params, options: given })
      const list = left[method as keyof typeof left] as unknown[] | undefined
      const said = await (method === 'tools/call'
        ? created
        : list === undefined
          ? {}
          : list.length > 1
            ? list.shift()
            : list[0])
      if (said instanceof Error) throw said
      if (method === 'tools/call') return { task: { ...task, ...(said as object) } }
      return method === 'tasks/get' ? { ...task, ...(said as object) } : said
    },
  }
  const opened = { client } as unknown as OpenedClient
  const replaced: OpenedClient[] = []
  const abort = new AbortController()
  const heard: (Json | undefined)[] = []
  const parts = {
    connection: {
      server: { name: 'shop', options, secrets: findKnownSecrets(options) },
      ready: () => Promise.resolve(opened),
      replace: (from: OpenedClient) => void replaced.push(from),
    },
    shared: { sdk, timers: clock },
    ...{ signal: abort.signal, quietMs, totalMs: 900, onReport: (data?: Json) => void heard.push(data) },
  } as unknown as TaskParts
  const ending: unknown[] = []
  const call = callAsTask({ name: 'work', arguments: { a: 1 } }, opened, parts)
  call.then(
    (value) => void ending.push(value),
    (error: unknown) => void ending.push(error),
  )
  /** Lets so many milliseconds pass, in steps, and returns what the call has ended with. */
  const after = async (milliseconds: number): Promise<unknown> => {
    for (let passed = 0; passed < milliseconds; passed += 50) {
      for (let turn = 0; turn < 3; turn++) await tick()
      clock.advance(50)
    }
    for (let turn = 0; turn < 3; turn++) await tick()
    return ending[0]
  }
  const methods = (): readonly string[] => asked.map(({ method }) => method)
  return { after, asked, methods, abort, heard, replaced, clock, parts, opened }
}

const working = { status: 'working' }

describe('a task', () => {
  it('is asked for by name and input, with its time; the client library sets no limit of its own', async () => {
    const { after, asked } = stage({ states: [working, { status: 'completed' }] })
    expect(await after(300)).toEqual(result)
    expect(asked.map(({ method, params }) => [method, params])).toEqual([
      ['tools/call', { name: 'work', arguments: { a: 1 }, task: { ttl: 900 } }],
      ['tasks/get', { taskId: 't' }],
      ['tasks/get', { taskId: 't' }],
      ['tasks/result', { taskId: 't' }],
    ])
    for (const { options: given } of asked) {
      expect(given.timeout).toBe(2 ** 31 - 1)
      expect(given.signal).toBeInstanceOf(AbortSignal)
    }
  })

  it('is heard of each time, with what is new', async () => {
    const message = `${secret} ${'-'.repeat(600)}`
    const told = { status: 'working', statusMessage: message }
    const { after, heard } = stage({ states: [working, told, told, { status: 'completed' }] })
    await after(600)
    expect(heard).toEqual([
      ...[working, undefined],
      { status: 'working', message: expect.stringMatching(/^\[secret\] -+ … \(cut\)$/) },
      ...[undefined, { status: 'completed' }],
    ])
    expect((heard[2] as { message: string }).message).toHaveLength(500)
  })

  it.each([
    [100, 60_000, 100],
    [1, 60_000, 50],
    [undefined, 60_000, 1_000],
    [100_000, 1_000, 500],
    [100_000, 901, 450],
  ])('is asked about after %s ms where it may be quiet for %i', async (pollInterval, quietMs, wait) => {
    const { clock, methods } = stage({ created: { ...working, pollInterval }, states: [working], quietMs })
    for (let turn = 0; turn < 5; turn++) await tick()
    clock.advance(wait - 1)
    await tick()
    expect(methods()).toEqual(['tools/call'])
    clock.advance(1)
    await tick()
    expect(methods()).toEqual(['tools/call', 'tasks/get'])
  })

  it('that needs input is asked once for its result, which ends it as soon as it comes', async () => {
    let give = (_value: object): void => {}
    const later = new Promise<object>((resolve) => (give = resolve))
    const needs = { status: 'input_required' }
    const { after, methods, heard } = stage({ states: [needs, needs, working], results: [later] })
    expect(await after(500)).toBeUndefined()
    expect(methods().filter((method) => method === 'tasks/result')).toHaveLength(1)
    give(result)
    for (let turn = 0; turn < 5; turn++) await tick()
    expect(await after(0)).toEqual(result)
    expect(heard.length).toBeGreaterThan(2)
  })

  it.each(['completed', 'failed'])(
    'that is %s at once has its result without another question',
    async (status) => {
      const { after, methods } = stage({ created: { status } })
      expect(await after(0)).toEqual(result)
      expect(methods()).toEqual(['tools/call', 'tasks/result'])
    },
  )

  it.each(['completed', 'failed'])(
    'that is %s is not asked about while its result is on the way',
    async (status) => {
      const { after, methods } = stage({ created: { status }, results: [never] })
      expect(await after(500)).toBeUndefined()
      expect(methods()).toEqual(['tools/call', 'tasks/result'])
    },
  )

  it('that the server cancelled has failed', async () => {
    const { after } = stage({ states: [{ status: 'cancelled' }] })
    expect(await after(200)).toMatchObject({
      ...{ outcome: 'failed' },
      message: 'The server cancelled the task of this call. A part of it may have happened.',
    })
  })

  it('whose result is an error has failed with the words of the server, in 8000 characters at most', async () => {
    const failing = (text: string) =>
      stage({ created: { status: 'failed' }, results: [new sdk.ProtocolError(1, text)] })
    expect(await failing(`no ${secret}`).after(0)).toMatchObject({
      ...{ name: 'ToolError', outcome: 'failed' },
      message: 'The server answered with an error: no [secret]',
    })
    const { message } = (await failing('-'.repeat(9_000)).after(0)) as Error
    expect(message).toHaveLength(8_000)
  })
})

describe('a task over connections that are lost', () => {
  const doubt = (why: string): object => ({
    outcome: 'interrupted',
    message: `The MCP server shop began this call as a task and does not say how it ended (${why}). It may have taken effect: find out before you ask for it again.`,
  })

  it('is found again, also after six losses with an answer in between', async () => {
    const breaks = [lost, lost, lost]
    const states = [...breaks, working, ...breaks, working, { status: 'completed' }]
    const { after, methods, replaced } = stage({ states })
    expect(await after(2_000)).toEqual(result)
    expect(methods().filter((method) => method === 'tools/call')).toHaveLength(1)
    expect(replaced).toEqual([])
  })

  it('is in doubt after six losses in a row', async () => {
    const five = stage({ states: [lost, lost, lost, lost, lost, { status: 'completed' }] })
    expect(await five.after(2_000)).toEqual(result)
    const six = stage({ states: [lost, lost, lost, lost, lost, lost, { status: 'completed' }] })
    expect(await six.after(2_000)).toMatchObject(doubt('closed'))
  })

  it('waits between two connections', async () => {
    const { after, methods } = stage({ states: [lost] })
    await after(250)
    expect(methods().filter((method) => method === 'tasks/get')).toHaveLength(1)
  })

  it.each<[string, Error, string]>([
    ['does not know it', new sdk.ProtocolError(1, 'unknown'), 'unknown'],
    ['wants another authorization', new sdk.UnauthorizedError('sign in'), 'sign in'],
    [
      'says too much',
      new sdk.ProtocolError(1, `${secret} ${'-'.repeat(400)}`),
      `[secret] ${'-'.repeat(283)} … (cut)`,
    ],
  ])('is in doubt at once where the server %s', async (_what, error, why) => {
    const { after, methods } = stage({ states: [error, { status: 'completed' }] })
    expect(await after(500)).toMatchObject(doubt(why))
    expect(methods()).toEqual(['tools/call', 'tasks/get'])
  })

  it('has a new session where the server has forgotten the one before', async () => {
    const forgot = new sdk.SdkHttpError(sdk.SdkErrorCode.ClientHttpNotImplemented, 'no session', {
      ...{ status: 404, statusText: '' },
    })
    const { after, replaced, opened } = stage({ states: [forgot, { status: 'completed' }] })
    expect(await after(500)).toEqual(result)
    expect(replaced).toEqual([opened])
  })

  it('is in doubt where there is no connection any more', async () => {
    const { after, parts } = stage({ states: [lost] })
    Object.assign(parts.connection, { ready: () => Promise.reject(new Error('gone')) })
    expect(await after(500)).toMatchObject(doubt('gone'))
  })
})

describe('a task that is not waited for any more', () => {
  const enough = new Error('enough')
  const cancelled = (asked: readonly { method: string; params: object; options: sdk.RequestOptions }[]) =>
    asked
      .filter(({ method }) => method === 'tasks/cancel')
      .map(({ params, options: { timeout } }) => [params, timeout])

  it('is cancelled at the server', async () => {
    const { after, abort, asked, clock } = stage({ states: [working] })
    await after(200)
    abort.abort(enough)
    expect(await after(0)).toBe(enough)
    expect(cancelled(asked)).toEqual([[{ taskId: 't' }, 5_000]])
    expect(clock.pending).toBe(0)
  })

  it('is not cancelled once it has ended', async () => {
    const { after, asked, abort } = stage({ created: { status: 'completed' } })
    expect(await after(0)).toEqual(result)
    abort.abort(enough)
    expect(cancelled(asked)).toEqual([])
  })

  it('is cancelled when it is created later', async () => {
    let create = (_value: object): void => {}
    const { after, abort, asked, clock } = stage({
      created: new Promise<object>((resolve) => (create = resolve)),
    })
    await after(0)
    abort.abort(enough)
    expect(await after(0)).toBe(enough)
    expect([cancelled(asked), clock.pending]).toEqual([[], 1])
    create(working)
    await after(0)
    expect([cancelled(asked), clock.pending]).toEqual([[[{ taskId: 't' }, 5_000]], 0])
  })

  it('is given up five seconds later where it is not created', async () => {
    const { after, abort, asked, clock } = stage({ created: never })
    await after(0)
    abort.abort(enough)
    expect(await after(0)).toBe(enough)
    const { signal } = asked[0]!.options
    clock.advance(4_999)
    expect(signal?.aborted).toBe(false)
    clock.advance(1)
    expect(signal?.aborted).toBe(true)
  })

  it('is not asked for where it was cancelled before', async () => {
    const { parts, opened, abort, asked } = stage({ created: never })
    abort.abort(enough)
    await tick()
    await expect(callAsTask({ name: 'work' }, opened, parts)).rejects.toBe(enough)
    expect(asked).toHaveLength(1)
  })
})

describe('a tool runs as a task', () => {
  const runs = (taskSupport: string | undefined, capabilities: unknown): boolean =>
    isRunAsTask(
      { raw: taskSupport === undefined ? {} : { execution: { taskSupport } } } as unknown as ListedTool,
      { client: { getServerCapabilities: () => capabilities } } as unknown as OpenedClient,
    )
  const all = { tasks: { requests: { tools: { call: {} } } } }

  it('where it has to, and its server takes tasks', () => {
    expect(runs('required', all)).toBe(true)
    for (const support of ['optional', 'forbidden', undefined]) expect(runs(support, all)).toBe(false)
    for (const less of [
      undefined,
      {},
      { tasks: {} },
      { tasks: { requests: {} } },
      { tasks: { requests: { tools: {} } } },
    ])
      expect(runs('required', less)).toBe(false)
  })
})
