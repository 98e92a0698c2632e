// What a client reads of tools that are served, in one process: the client and the server are the official ones.
import { Client, InMemoryTransport } from '@modelcontextprotocol/client'
import * as sdk from '@modelcontextprotocol/server'
import type { Tool } from '@tallystick/core'
import { manualClock } from '@tallystick/testkit'
import {
  type CallVerdict,
  type ResultPart,
  deriveToolCallId,
  type ToolRun,
  type ToolSignal,
} from '@tallystick/core/vocabulary'
import { type ServeMcpOptions } from '@tallystick/tools/mcp'
import { NEVER, Observable, of, throwError } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createServerFactory } from '../../src/mcp/serve-mcp.ts'
import { tick } from './connected.ts'
import { ownTools } from './servers/own-tools.ts'

/** A tool that reports what a test wants. */
function toolOf(
  run: (run: ToolRun) => Observable<ToolSignal>,
  {
    verdict = { kind: 'run' },
    ...more
  }: Partial<Tool> & { verdict?: CallVerdict | Promise<CallVerdict> } = {},
): Tool {
  const { add } = ownTools()
  const { timeoutMs: _timeout, ...rest } = add
  return {
    ...rest,
    name: 'act',
    description: 'Acts.',
    effect: 'write',
    check: () => verdict,
    run,
    ...more,
  } as Tool
}

const said = (text: string, outcome: 'success' | 'failed' = 'success'): ToolSignal => ({
  ...{ type: 'tool_ended', outcome, content: [{ type: 'text', text }] },
})

interface Called {
  readonly text: string
  readonly isError: boolean
  readonly content: sdk.CallToolResult['content']
}

/** Serves tools to a client, which goes away with the test. */
async function serving(tools: readonly Tool[], options: ServeMcpOptions = {}) {
  const stop = new AbortController()
  const timers = manualClock()
  const server = createServerFactory({ tools, options, sdk, stop: stop.signal, timers })()
  const client = new Client({ name: 'test', version: '1' })
  const [near, far] = InMemoryTransport.createLinkedPair()
  await server.connect(far)
  await client.connect(near)
  const notified: unknown[] = []
  const send = far.send.bind(far)
  far.send = async (message, given) => {
    if ('method' in message) notified.push(message.method)
    await send(message, given)
  }
  onTestFinished(() => client.close())
  const progress: unknown[] = []
  const call = async (
    name: string,
    {
      input,
      key,
      signal,
      isWatched = false,
    }: {
      readonly input?: Record<string, unknown>
      readonly key?: unknown
      readonly signal?: AbortSignal
      readonly isWatched?: boolean
    } = {},
  ): Promise<Called> => {
    const result = await client.callTool(
      {
        name,
        ...(input && { arguments: input }),
        ...(key !== undefined && { _meta: { 'io.github.tallystick/idempotency-key': key } }),
      },
      {
        ...(signal && { signal }),
        ...(isWatched && { onprogress: (data: unknown) => void progress.push(data) }),
      },
    )
    const text = result.content.map((block) => (block.type === 'text' ? block.text : block.type)).join()
    return { text, isError: result.isError === true, content: result.content }
  }
  return { client, call, progress, notified, stop, timers }
}

describe('the tools that a client lists', () => {
  it('given tools, when they are listed, then with their schema, and whether they only read', async () => {
    const { add, pay } = ownTools()
    const { client } = await serving([add, pay], { name: 'shop', version: '2.0.0', instructions: 'Adds.' })
    const { tools } = await client.listTools()
    expect(tools).toMatchObject([
      { name: 'add', description: 'Adds two numbers.', annotations: { readOnlyHint: true } },
      { name: 'pay', description: 'Pays.', annotations: { readOnlyHint: false } },
    ])
    expect(tools[0]?.inputSchema).toEqual(add.inputSchema)
    expect(client.getServerVersion()).toMatchObject({ name: 'shop', version: '2.0.0' })
    expect(client.getInstructions()).toBe('Adds.')
    const plain = await serving([add])
    expect(plain.client.getServerVersion()).toMatchObject({ name: 'tallystick', version: '1.0.0' })
    expect(plain.client.getInstructions()).toBeUndefined()
  })
})

describe('a call of a client', () => {
  it('given a tool that there is not, when it is called, then the client reads the nearest names, and the name is cut', async () => {
    const { add, slow, pay } = ownTools()
    const { call } = await serving([add, slow, pay])
    expect(await call('ad')).toMatchObject({
      ...{ isError: true, text: 'There is no tool "ad". Nothing was run. The nearest are add.' },
    })
    const { call: among } = await serving(['ad1', 'ad2', 'ad3', 'ad4'].map((name) => ({ ...add, name })))
    expect((await among('ad')).text).toMatch(/The nearest are ad\d, ad\d, ad\d\.$/)
    const { text } = await call('x'.repeat(200))
    expect(text).toBe(`There is no tool "${'x'.repeat(100)}". Nothing was run.`)
  })

  it('given a key by which the client knows the call, when it is called, then the tool gets it, where it is one', async () => {
    const keys: string[] = []
    const tool = toolOf((run) => (keys.push(run.idempotencyKey), of(said('ok'))))
    const { call } = await serving([tool])
    const longest = 'k'.repeat(256)
    for (const key of ['mine', longest, `${longest}k`, '', 7, undefined]) await call('act', { key })
    const fresh = expect.stringMatching(/^[0-9a-f-]{36}$/) as string
    expect(keys).toEqual(['mine', longest, fresh, fresh, fresh, fresh])
    expect(new Set(keys).size).toBe(6)
  })

  it('given no input, when it is called, then the tool gets an object without fields, and the first attempt', async () => {
    const runs: ToolRun[] = []
    const tool = toolOf((run) => (runs.push(run), of(said('ok'))))
    const { call } = await serving([tool], { context: { user: 'ada' } })
    await call('act')
    await call('act', { input: { a: 1 } })
    expect(runs).toMatchObject([
      { input: {}, attempt: 1, turn: 1, context: { user: 'ada' } },
      { input: { a: 1 } },
    ])
    for (const { runId, toolCallId } of runs) expect(toolCallId).toBe(deriveToolCallId(runId, 1, 1, 1))
  })

  it('given a number beyond 2^53, when it is called, then the client reads a refusal, and nothing runs', async () => {
    const { call } = await serving([toolOf(() => of(said('Done.')))])
    expect(await call('act', { input: { id: 2 ** 60 } })).toMatchObject({
      isError: true,
      text: expect.stringContaining('may have been rounded') as string,
    })
  })

  it('given a verdict, when the tool is checked, then the client reads a refusal, and nothing runs', async () => {
    let runs = 0
    const run = () => (runs++, of(said('ok')))
    const refuse = { kind: 'refuse', outcome: 'invalid_input', text: 'No such place.' } as const
    const { call } = await serving([toolOf(run, { verdict: refuse })])
    expect(await call('act')).toMatchObject({ isError: true, text: 'No such place.' })
    const asking = { verdict: { kind: 'ask', reason: 'it is money' } } as const
    const bare = { verdict: { kind: 'ask' } } as const
    expect(await (await serving([toolOf(run, asking)])).call('act')).toMatchObject({
      isError: true,
      text: 'A person has to approve this call (it is money), and no person did. Nothing was run.',
    })
    const asked: unknown[] = []
    const answers = [false, 'yes', Promise.resolve(false)]
    const approve = (given: unknown) => (asked.push(given), answers.shift() as boolean)
    const { call: unapproved } = await serving([toolOf(run, bare)], { approve })
    for (let time = 0; time < 3; time++) {
      expect((await unapproved('act', { input: { a: 1 } })).text).toBe(
        'A person has to approve this call, and no person did. Nothing was run.',
      )
    }
    expect(asked[0]).toEqual({ tool: 'act', input: { a: 1 } })
    expect(runs).toBe(0)
    const { call: approved } = await serving([toolOf(run, asking)], { approve: async () => true })
    expect(await approved('act')).toMatchObject({ isError: false, text: 'ok' })
    expect(runs).toBe(1)
  })

  it('given a tool that goes wrong, when it is called, then the client reads how', async () => {
    const ended = async (tool: Tool): Promise<string> => {
      const { text, isError } = await (await serving([tool])).call('act')
      expect(isError).toBe(true)
      return text
    }
    expect(await ended(toolOf(() => of(said('Out of paper.', 'failed'))))).toBe('Out of paper.')
    expect(await ended(toolOf(() => throwError(() => new Error('torn'))))).toBe(
      'The tool failed: Error: torn',
    )
    expect(await ended(toolOf(() => of()))).toBe('The tool ended without a result.')
    expect(
      await ended(
        toolOf(() => {
          throw new Error('no run')
        }),
      ),
    ).toBe('The tool failed: Error: no run')
    expect(await ended(toolOf(() => of({ type: 'tool_deferred', externalId: 'R-1' } as ToolSignal)))).toBe(
      'The work continues elsewhere (R-1), and no client hears of its end.',
    )
    const failing = (thrown: unknown) => toolOf(() => NEVER, { check: () => Promise.reject(thrown) })
    expect(await ended(failing(new Error('no check')))).toBe('The tool failed: no check')
    expect(await ended(failing('plain'))).toBe('The tool failed: plain')
  })

  it('given reports on the way, when the client wants them, then it reads numbers, or counts them, and one text each', async () => {
    const reports = [
      { progress: 5, total: 9, message: 'half' },
      'plain',
      { step: 'b' },
      { progress: 'x', message: 7 },
      { progress: 7, total: 'many', message: 'more' },
    ]
    const signals = [
      ...reports.map((data): ToolSignal => ({ type: 'tool_progressed', data })),
      { type: 'tool_progressed', data: { progress: 8, message: 'm'.repeat(1_001) } } as ToolSignal,
      // JSON carries none of these, so that the client could read none.
      ...[undefined, Number.NaN, { progress: Number.NaN }, { progress: 9, total: Infinity }, { at: 9n }].map(
        (data) => ({ type: 'tool_progressed', data }) as unknown as ToolSignal,
      ),
      { type: 'tool_progressed', data: null } as ToolSignal,
    ]
    const tool = toolOf(
      () =>
        new Observable((subscriber) => {
          for (const signal of signals) subscriber.next(signal)
          void tick()
            .then(tick)
            .then(() => subscriber.next(said('ok')))
        }),
    )
    const { call, progress, notified } = await serving([tool])
    expect((await call('act', { isWatched: true })).text).toBe('ok')
    expect(progress).toEqual([
      { progress: 5, total: 9, message: 'half' },
      { progress: 1, message: 'plain' },
      { progress: 2, message: '{"step":"b"}' },
      { progress: 3, message: '{"progress":"x","message":7}' },
      { progress: 7, message: 'more' },
      { progress: 8, message: 'm'.repeat(1_000) },
      { progress: 4, message: 'null' },
    ])
    expect(notified).toHaveLength(7)
    await call('act')
    expect([notified.length, progress.length]).toEqual([7, 7])
  })

  it('given a time, when the tool takes longer, then it is stopped and given up; one that ends in time is not', async () => {
    const stopped: string[] = []
    const running: { next(signal: ToolSignal): void }[] = []
    const tool = toolOf(
      ({ cancelled$ }) =>
        new Observable((each) => {
          running.push(each)
          // What it says at once when it is stopped is too late.
          cancelled$.subscribe((why) => (stopped.push(why), each.next(said('half of it'))))
        }),
      { timeoutMs: 1_000 },
    )
    const { call, stop, timers } = await serving([tool])
    const first = call('act')
    while (running.length === 0) await tick()
    timers.advance(999)
    expect(stopped).toEqual([])
    timers.advance(1)
    expect(await first).toMatchObject({
      isError: true,
      text: 'The tool was given up because it took too long.',
    })
    expect(stopped).toEqual(['The tool took too long.'])
    const second = call('act')
    while (running.length === 1) await tick()
    running[1]?.next(said('in time'))
    expect((await second).text).toBe('in time')
    expect(timers.pending).toBe(0)
    // It has ended, and does not hear that nothing is served any more.
    stop.abort()
    expect(stopped).toHaveLength(1)
  })

  it('given a time without progress, when the tool reports none, then it is given up; reports begin the time anew', async () => {
    const running: { next(signal: ToolSignal): void }[] = []
    const tool = toolOf(() => new Observable((each) => void running.push(each)), { quietMs: 1_000 })
    const { call, timers } = await serving([tool])
    const first = call('act')
    while (running.length === 0) await tick()
    timers.advance(999)
    expect(timers.pending).toBe(1)
    running[0]?.next({ type: 'tool_progressed', data: 1 })
    timers.advance(999)
    expect(timers.pending).toBe(1)
    timers.advance(1)
    expect(await first).toMatchObject({ isError: true })
    running[0]?.next({ type: 'tool_progressed', data: 2 })
    expect(timers.pending).toBe(0)
    const second = call('act')
    while (running.length === 1) await tick()
    running[1]?.next(said('in time'))
    expect((await second).text).toBe('in time')
    expect(timers.pending).toBe(0)
  })

  it('given a call that runs, when the client cancels it or the server stops, then the tool hears of it', async () => {
    const stopped: string[] = []
    const runs: unknown[] = []
    const tool = toolOf(({ cancelled$, input }) => {
      runs.push(input)
      return new Observable((subscriber) => {
        cancelled$.subscribe((why) => {
          stopped.push(why)
          subscriber.next(said('stopped', 'failed'))
        })
      })
    })
    const { call, stop } = await serving([tool])
    const abort = new AbortController()
    const first = call('act', { signal: abort.signal })
    while (runs.length === 0) await tick()
    abort.abort()
    await expect(first).rejects.toThrow('aborted')
    while (stopped.length === 0) await tick()
    const second = call('act')
    while (runs.length === 1) await tick()
    stop.abort()
    expect((await second).text).toBe('stopped')
    expect(stopped).toEqual(['the client cancelled the call', 'the client cancelled the call'])
    expect(await call('act')).toMatchObject({
      isError: true,
      text: 'The call was cancelled. Nothing was run.',
    })
    expect(runs).toHaveLength(2)
  })
})

describe('what a tool answers', () => {
  it('given parts of each kind, when a client reads them, then as blocks of the protocol', async () => {
    const parts: readonly ResultPart[] = [
      { type: 'text', text: 'a' },
      { type: 'image', mediaType: 'image/png', data: 'aGVs' },
      { type: 'file', mediaType: 'audio/wav', data: 'aGVs' },
      { type: 'file', mediaType: 'text/plain', data: 'aGVs', name: 'a b.txt' },
      { type: 'file', mediaType: 'text/plain', data: 'aGVs' },
      { type: 'image', mediaType: 'image/png', url: 'https://a.example/b.png' },
      { type: 'file', mediaType: 'text/plain', providerFile: { provider: 'anthropic', id: 'f1' } },
    ]
    const tool = toolOf(() => of({ type: 'tool_ended', outcome: 'success', content: parts } as ToolSignal))
    const { content, isError } = await (await serving([tool])).call('act')
    expect(isError).toBe(false)
    expect(content).toEqual([
      { type: 'text', text: 'a' },
      { type: 'image', data: 'aGVs', mimeType: 'image/png' },
      { type: 'audio', data: 'aGVs', mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: 'file:///a%20b.txt', blob: 'aGVs', mimeType: 'text/plain' } },
      { type: 'resource', resource: { uri: 'file:///result', blob: 'aGVs', mimeType: 'text/plain' } },
      {
        ...{ type: 'resource_link', uri: 'https://a.example/b.png', name: 'https://a.example/b.png' },
        mimeType: 'image/png',
      },
      { type: 'text', text: '(text/plain, which a provider of models keeps.)' },
    ])
  })
})
