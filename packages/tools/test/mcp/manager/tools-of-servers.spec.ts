// The tools of servers as tools of an agent: their time, how results are read, and what happens where the list changes.
import type { Tool } from '@tallystick/core'
import { deriveToolCallId, type Json } from '@tallystick/core/vocabulary'
import type { HttpServer, McpManager, McpOptions } from '@tallystick/tools/mcp'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { callContext, endingOf } from '../../one-call.ts'
import { connect, nextChange } from '../connected.ts'
import { changingServer, listed } from '../servers/changing-server.ts'
import { type Script, scriptedServer } from '../servers/scripted-server.ts'

const old = { era: 'legacy' } as const

async function connected(
  script: Script,
  more: Partial<HttpServer> = {},
  options: Partial<McpOptions> = {},
): Promise<McpManager> {
  const { url } = await scriptedServer(script)
  return await connect({ own: { url, ...old, ...more } }, options)
}

const toolNamed = ({ tools }: McpManager, name: string): Tool =>
  tools.find(({ origin }) => origin?.name === name) as Tool

describe('the time of a tool', () => {
  it.each([
    [{}, {}, 602_000],
    [{ maxTotalMs: 5_000 }, {}, 7_000],
    // A person who answers takes the time that it takes.
    [{}, { elicit: () => ({ action: 'decline' }) as const }, undefined],
    [{}, { sample: () => Promise.reject(new Error('no')) }, undefined],
  ])('given %o and %o, then it is %s', async (more, options, timeoutMs) => {
    const manager = await connected({}, more, options)
    expect(manager.tools[0]?.timeoutMs).toBe(timeoutMs)
  })
})

describe('what a server reports while a tool runs', () => {
  it('given a long message with a secret, and more reports than are passed on, then a thousand come, clean', async () => {
    const secret = 'swordfish-0123456789'
    const message = `${secret}\n${'-'.repeat(600)}`
    const manager = await connected(
      {
        'tools/call': ({ id, params, response }) => {
          const { progressToken } = params['_meta'] as { progressToken: number }
          const write = (said: object): void =>
            void response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...said })}\n\n`)
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          for (let progress = 0; progress < 1_002; progress++)
            write({ method: 'notifications/progress', params: { progressToken, progress, message } })
          write({ id, result: { content: [{ type: 'text', text: 'done' }] } })
          response.end()
        },
      },
      { secrets: [secret] },
    )
    const heard: Json[] = []
    await manager.call('own', 'work', {}, { onProgress: (data) => void heard.push(data) })
    expect(heard).toHaveLength(1_000)
    // 500 characters.
    expect(heard[0]).toEqual({
      progress: 0,
      message: expect.stringMatching(/^\[secret\] -{483} … \(cut\)$/) as string,
    })
  })
})

describe('what a tool answers', () => {
  const answering = (result: object): Script => ({ 'tools/call': ({ say }) => say({ result }) })
  const image = (length: number) => ({ type: 'image', data: 'A'.repeat(length), mimeType: 'image/png' })

  it('given a text, then a hundred thousand characters of it are read', async () => {
    const text = 'x'.repeat(100_001)
    const manager = await connected(answering({ content: [{ type: 'text', text }] }))
    const [part] = await manager.call('own', 'work', {})
    expect((part as { text: string }).text).toContain('\n(1 characters were left out')
  })

  it('given an image, then it is read where it has no more than fifty times as many characters as a text may have', async () => {
    const content = [image(500), image(504)]
    const manager = await connected(answering({ content }), { maxResultCharacters: 10 })
    const parts = await manager.call('own', 'work', {})
    expect(parts.map(({ type }) => type)).toEqual(['image', 'text'])
  })

  it.each([
    [[], 'The tool failed, and its server did not say why.'],
    [[{ type: 'text', text: 'No money.' }, image(4)], 'No money.\n(image/png)'],
  ])('given %o as a failure, then it is said: %s', async (content, text) => {
    const manager = await connected(answering({ content, isError: true }))
    expect(await endingOf(manager.tools[0]!, {})).toEqual({ outcome: 'failed', text })
  })

  it('given a result that says it is not a failure, then it is a success', async () => {
    const manager = await connected(answering({ content: [], isError: false }))
    expect(await manager.call('own', 'work', {})).toEqual([])
    expect((await endingOf(manager.tools[0]!, {})).outcome).toBe('success')
  })
})

describe('a tool that changes', () => {
  it('given digests of another process, then it asks, and its words are cut', async () => {
    const server = 'n'.repeat(70)
    const tools = [listed('work', 'd'.repeat(400))]
    const { url } = await scriptedServer({ 'tools/list': ({ say }) => say({ result: { tools } }) })
    const first = await connect({ [server]: { url, ...old } })
    const [tool] = first.tools
    const pins = { [tool?.name ?? '']: 'f'.repeat(64) }
    const manager = await connect({ [server]: { url, ...old } }, { pins })
    const verdict = await manager.tools[0]?.check({}, callContext)
    const cut = (letter: string, length: number): string => `${letter.repeat(length - 8)} … (cut)`
    expect(verdict).toEqual({
      kind: 'ask',
      reason:
        `The MCP server ${cut('n', 64)} has changed the description or the input schema of this tool since it was ` +
        `first listed. It says now: ${cut('d', 300)}`,
    })
  })

  it('given no list was read before, when a tool changes after it came, then it asks', async () => {
    const server = await changingServer([
      [listed('one')],
      [listed('one', 'Another.'), listed('two')],
      [listed('one', 'Another.'), listed('two', 'Other words.')],
    ])
    const manager = await connect({ own: { url: server.url, ...old } })
    for (let change = 1; change <= 2; change++) {
      const changed = nextChange(manager)
      await server.change()
      await changed
    }
    for (const name of ['one', 'two']) {
      expect(await toolNamed(manager, name).check({}, callContext)).toMatchObject({ kind: 'ask' })
    }
    // What is not listed anew stays the same tool.
    expect(manager.tools[0]).toBe(manager.tools[0])
  })

  it('given it changes twice at once, then both changes are read after 50 milliseconds, as one', async () => {
    const server = await changingServer([[listed('one')], [listed('two')], [listed('three')]])
    const manager = await connect({ own: { url: server.url, ...old } })
    const timers = vi.spyOn(globalThis, 'setTimeout')
    onTestFinished(() => timers.mockRestore())
    const changed = nextChange(manager)
    await Promise.all([server.change(), server.change()])
    expect(await changed).toMatchObject({ added: ['mcp__own__three'], removed: ['mcp__own__one'] })
    expect(timers.mock.calls.map(([, milliseconds]) => milliseconds)).toContain(50)
  })

  it('given it is gone, then calls are refused with the nearest names, unless the server is gone, too', async () => {
    const near = ['work1', 'work2', 'work3', 'work4'].map((name) => listed(name))
    const other = listed('entirely')
    const server = await changingServer([[listed('work'), other], near])
    let isAway = false
    const own = {
      ...{ url: server.url, ...old },
      type: 'http',
      fetch: async (...asked: Parameters<typeof fetch>) =>
        isAway ? new Response('', { status: 404 }) : await fetch(...asked),
    } as const
    const manager = await connect({ own }, { reconnect: { maxAttempts: 0 } })
    const [work, far] = [toolNamed(manager, 'work'), toolNamed(manager, 'entirely')]
    const changed = nextChange(manager)
    await server.change()
    await changed
    expect(await work.check({}, callContext)).toEqual({
      ...{ kind: 'refuse', outcome: 'unknown_tool' },
      text: 'The MCP server own does not offer the tool mcp__own__work any more. Nothing was run. The nearest are mcp__own__work1, mcp__own__work2, mcp__own__work3.',
    })
    expect(await far.check({}, callContext)).toMatchObject({
      text: expect.stringMatching(/Nothing was run\.$/) as string,
    })
    isAway = true
    await manager.call('own', 'work1', {}).catch(() => {})
    expect(manager.servers).toMatchObject([{ state: 'failed' }])
    expect(await work.check({}, callContext)).toEqual({ kind: 'run' })
  })

  it('given many calls that were checked and never run, then the last ten thousand are remembered', async () => {
    const server = await changingServer([
      [listed('work')],
      [listed('work', 'Two.')],
      [listed('work', 'Three.')],
    ])
    const manager = await connect({ own: { url: server.url, ...old } })
    const [tool] = manager.tools
    const idOf = (call: number) => ({ toolCallId: deriveToolCallId(callContext.runId, 1, 1, call) })
    const check = async (call: number): Promise<unknown> =>
      await tool!.check({}, { ...callContext, ...idOf(call) })
    const change = async (): Promise<void> => {
      const changed = nextChange(manager)
      await server.change()
      await changed
    }
    for (let call = 1; call <= 10_000; call++) await check(call)
    await change()
    const refused = expect.stringContaining('has changed this tool since the call was checked') as string
    expect(await endingOf(tool!, {}, idOf(1))).toEqual({ outcome: 'failed', text: refused })
    // One has run, so that one more finds its place, and the one after it does not.
    await check(10_001)
    await check(10_002)
    await change()
    expect(await endingOf(tool!, {}, idOf(10_002))).toEqual({ outcome: 'failed', text: refused })
    expect(await endingOf(tool!, {}, idOf(10_001))).toEqual({ outcome: 'success', text: 'done' })
  })
})
