// How one call of a server's tool is made, over a client that answers what a test wants.
import * as sdk from '@modelcontextprotocol/client'
import { manualClock } from '@tallystick/testkit'
import type { Json } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { callTool, type ToolCall } from '../../../src/mcp/call.ts'
import type { McpConnection } from '../../../src/mcp/connection.ts'
import type { OpenedClient, SharedParts } from '../../../src/mcp/client.ts'
import type { ListedTool } from '../../../src/mcp/listing.ts'
import { findKnownSecrets } from '../../../src/mcp/secrets.ts'
import { tick } from '../connected.ts'

const secret = 'swordfish-0123456789'
const raw = { name: 'look', inputSchema: { type: 'object' }, outputSchema: { type: 'object' } }
const tool = { name: 'look', raw } as unknown as ListedTool
const answer = { content: [{ type: 'text', text: 'seen' }] }
const lost = new sdk.SdkError(sdk.SdkErrorCode.ConnectionClosed, 'closed')
const unsent = new sdk.SdkError(sdk.SdkErrorCode.NotConnected, 'no')
const forgot = new sdk.SdkHttpError(sdk.SdkErrorCode.ClientHttpNotImplemented, 'no session', {
  ...{ status: 404, statusText: '' },
})
const refused = new sdk.UnauthorizedError('sign in')

interface Stage {
  /** What is said to a call, one after the other; the last one is repeated. */
  readonly says?: readonly unknown[]
  readonly ready?: McpConnection['ready']
  readonly authorize?: () => Promise<void>
  readonly options?: object
}

function stage(
  { says = [answer], ready, authorize, options: more }: Stage = {},
  given: Partial<ToolCall> = {},
) {
  const clock = manualClock()
  const options = { command: 'x', secrets: [secret], ...more }
  const asked: { params: object; options: sdk.RequestOptions & { toolDefinition: object } }[] = []
  const left = [...says]
  const client = {
    getServerCapabilities: () => ({}),
    callTool: async (params: object, sent: (typeof asked)[number]['options']) => {
      asked.push({ params, options: sent })
      const said = await (left.length > 1 ? left.shift() : left[0])
      if (said instanceof Error) throw said
      return said
    },
  }
  const opened = { client, ...(authorize && { authorize }) } as unknown as OpenedClient
  const steps: string[] = []
  const connection = {
    server: { name: 'shop', options, secrets: findKnownSecrets(options) },
    ready: ready ?? (() => Promise.resolve(opened)),
    replace: () => void steps.push('replaced'),
    lost: () => void steps.push('lost'),
    answered: () => void steps.push('answered'),
    faults: () => ['it is away'],
    deadlines: new Set(),
  } as unknown as McpConnection
  const abort = new AbortController()
  const reports: Json[] = []
  const call: ToolCall = {
    ...{ tool, input: { a: 1 }, effect: 'write', signal: abort.signal },
    progress: (data) => void reports.push(data),
    ...given,
  }
  const ended: unknown[] = []
  const called = callTool(call, connection, { sdk, timers: clock } as unknown as SharedParts)
  called.then(
    (value) => void ended.push(value),
    (error: unknown) => void ended.push(error),
  )
  const ending = async (): Promise<unknown> => {
    for (let turn = 0; turn < 5; turn++) await tick()
    return ended[0]
  }
  return { ending, asked, steps, reports, clock, connection, abort }
}

const interrupted = { name: 'ToolError', outcome: 'interrupted' }
const away = {
  ...{ name: 'ToolError', outcome: 'failed' },
  message:
    'The MCP server shop cannot be reached now (it is away). Nothing was run. Continue without it, or try again later.',
}

describe('a call', () => {
  it('names the tool and holds the input; the client library checks nothing and sets no limit', async () => {
    const { ending, asked, steps, clock, connection } = stage()
    expect(connection.deadlines.size).toBe(1)
    expect(await ending()).toBe(answer)
    const { outputSchema: _checked, ...toolDefinition } = raw
    expect(asked).toMatchObject([
      { params: { name: 'look', arguments: { a: 1 } }, options: { timeout: 2 ** 31 - 1 } },
    ])
    expect(asked[0]?.params).not.toHaveProperty('_meta')
    expect(asked[0]?.options.toolDefinition).toStrictEqual(toolDefinition)
    expect(asked[0]?.options.signal).toBeInstanceOf(AbortSignal)
    expect([steps, clock.pending, connection.deadlines.size]).toEqual([['answered'], 0, 0])
  })

  it('carries its key and its place in a trace where it has them', async () => {
    const key = { 'io.github.tallystick/idempotency-key': 'k' }
    const meta = async (given: Partial<ToolCall>): Promise<unknown> => {
      const { ending, asked } = stage({}, given)
      await ending()
      return asked[0]?.params
    }
    const params = { name: 'look', arguments: { a: 1 } }
    expect(await meta({ idempotencyKey: 'k' })).toStrictEqual({ ...params, _meta: key })
    expect(await meta({ traceparent: 't' })).toStrictEqual({ ...params, _meta: { traceparent: 't' } })
    expect(await meta({ idempotencyKey: 'k', traceparent: 't' })).toStrictEqual({
      ...{ ...params, _meta: { ...key, traceparent: 't' } },
    })
  })

  it('passes a thousand reports on, with numbers that are some, and without secrets', async () => {
    const { ending, asked, reports } = stage({ says: [new Promise(() => {})] })
    await ending()
    const report = asked[0]!.options.onprogress!
    report({ progress: 1 })
    report({ progress: Number.NaN, total: Infinity, message: `${secret}\n${'-'.repeat(600)}` })
    report({ progress: 2, total: 3, message: 5 as never })
    expect(reports).toEqual([
      { progress: 1 },
      { progress: 0, total: 0, message: expect.stringMatching(/^\[secret\] -+ … \(cut\)$/) as unknown },
      { progress: 2, total: 3 },
    ])
    expect((reports[1] as { message: string }).message).toHaveLength(500)
    for (let at = 0; at < 1_000; at++) report({ progress: at })
    expect(reports).toHaveLength(1_000)
  })
})

describe('the time of a call', () => {
  const never = new Promise(() => {})
  const late = (what: string) => ({
    ...{ name: 'ToolError', outcome: 'timed_out' },
    message: `The MCP server shop did not answer in time. ${what}`,
  })
  const sent = late('It was asked to stop. What it was asked for may have happened all the same.')

  it.each([
    [{}, 60_000],
    [{ timeoutMs: 70_000 }, 70_000],
    [{ timeoutMs: 700_000 }, 600_000],
    [{ timeoutMs: 700_000, maxTotalMs: 80_000 }, 80_000],
  ])('with %j is over after %i ms', async (options, milliseconds) => {
    const { ending, clock, asked } = stage({ says: [never], options })
    await ending()
    clock.advance(milliseconds - 1)
    expect(await ending()).toBeUndefined()
    clock.advance(1)
    // The client library ends a request that is aborted in its own way.
    expect(asked[0]?.options.signal?.aborted).toBe(true)
  })

  it('is longer where the server reports that it is at work', async () => {
    const { ending, clock, asked } = stage({ says: [never] })
    await ending()
    clock.advance(59_999)
    asked[0]!.options.onprogress!({ progress: 1 })
    clock.advance(59_999)
    expect(asked[0]?.options.signal?.aborted).toBe(false)
    clock.advance(1)
    expect(asked[0]?.options.signal?.aborted).toBe(true)
  })

  it('begins when there is a connection', async () => {
    const asked: sdk.RequestOptions[] = []
    const callTool = (_params: object, options: sdk.RequestOptions): Promise<unknown> => {
      asked.push(options)
      return never
    }
    const connecting = Promise.withResolvers<OpenedClient>()
    const { ending, clock } = stage({ ready: () => connecting.promise })
    await ending()
    clock.advance(59_999)
    connecting.resolve({ client: { getServerCapabilities: () => ({}), callTool } } as unknown as OpenedClient)
    await ending()
    clock.advance(59_999)
    expect(asked[0]?.signal?.aborted).toBe(false)
    clock.advance(1)
    expect(asked[0]?.signal?.aborted).toBe(true)
  })

  /** A client library that ends a request when its signal aborts. */
  const ending = async (moment: 'late' | 'cancelled', more: Stage = {}) => {
    let fail = (_error: Error): void => {}
    const failing = new Promise((_resolve, reject) => (fail = reject))
    failing.catch(() => {})
    const staged = stage({ says: [failing], ...more })
    await staged.ending()
    if (moment === 'late') staged.clock.advance(60_000)
    else staged.abort.abort(new Error('enough'))
    fail(new sdk.SdkError(sdk.SdkErrorCode.RequestTimeout, 'timed out'))
    return await staged.ending()
  }

  it('says that what was sent may have happened, and that nothing was sent', async () => {
    expect(await ending('late')).toMatchObject(sent)
    expect(await ending('cancelled')).toMatchObject({ message: 'enough' })
    const ready = (signal: AbortSignal) =>
      new Promise<never>((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(new Error('no'))),
      )
    expect(await ending('late', { ready })).toMatchObject(
      late('Nothing was run: there was no connection to it.'),
    )
    expect(await ending('cancelled', { ready })).toMatchObject({ message: 'enough' })
  })

  it('says that nothing was run where only a session was unknown before', async () => {
    let attempts = 0
    const opened = {
      client: { getServerCapabilities: () => ({}), callTool: () => Promise.reject(forgot) },
    } as unknown as OpenedClient
    const ready = (signal: AbortSignal) =>
      ++attempts === 1
        ? Promise.resolve(opened)
        : new Promise<never>((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(new Error('no'))),
          )
    expect(await ending('late', { ready })).toMatchObject(
      late('Nothing was run: there was no connection to it.'),
    )
  })
})

describe('a call that failed', () => {
  it.each<[string, Stage, Partial<ToolCall>, unknown, number, readonly string[]]>([
    [
      'with an answer',
      { says: [new sdk.ProtocolError(1, `no ${secret}`)] },
      {},
      { message: 'The server answered with an error: no [secret]' },
      1,
      ['answered'],
    ],
    ['before it was sent', { says: [unsent, answer] }, {}, away, 1, ['lost']],
    ['in doubt, as a write', { says: [lost, answer] }, {}, interrupted, 1, []],
    ['in doubt, as a read', { says: [lost, answer] }, { effect: 'read' }, answer, 2, ['answered']],
    ['in doubt, as a read, twice', { says: [lost] }, { effect: 'read' }, interrupted, 2, []],
    ['in a session that is unknown', { says: [forgot, answer] }, {}, answer, 2, ['replaced', 'answered']],
    ['in two of them', { says: [forgot] }, {}, away, 2, ['replaced', 'replaced']],
    [
      'without an authorization',
      { says: [refused, answer] },
      {},
      { message: expect.stringContaining('HTTP 401') },
      1,
      [],
    ],
  ])('%s', async (_how, ...[given, call, ends, attempts, done]) => {
    const { ending, asked, steps } = stage(given, call)
    expect(await ending()).toMatchObject(ends as object)
    expect([asked.length, steps]).toEqual([attempts, done])
  })

  it('without an authorization is made again with one, twice at most', async () => {
    let asks = 0
    const authorize = async (): Promise<void> => void asks++
    const once = stage({ says: [refused, answer], authorize })
    expect(await once.ending()).toBe(answer)
    expect([asks, once.steps]).toEqual([1, ['replaced', 'answered']])
    asks = 0
    const always = stage({ says: [refused], authorize })
    expect(await always.ending()).toMatchObject({ message: expect.stringContaining('HTTP 401') as unknown })
    expect([asks, always.asked.length]).toEqual([2, 3])
  })

  it('without a connection says why', async () => {
    const { ending, clock, connection } = stage({ ready: () => Promise.reject(new Error('no')) })
    expect(await ending()).toMatchObject(away)
    expect([clock.pending, connection.deadlines.size]).toEqual([0, 0])
  })
})
