// Resources and prompts of a server that runs in this process: the client and the server are the official ones.
import * as sdk from '@modelcontextprotocol/client'
import { Server } from '@modelcontextprotocol/server'
import { manualClock } from '@tallystick/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { McpConnection } from '../../../src/mcp/connection.ts'
import type { SharedParts } from '../../../src/mcp/client.ts'
import { readPrompt, listPrompts, readResource, listResources } from '../../../src/mcp/mcp-tools.ts'
import { findKnownSecrets } from '../../../src/mcp/secrets.ts'
import { tick } from '../connected.ts'

type Answer = object | (() => Promise<object>)
const secret = 'swordfish-0123456789'
const options = { command: 'x', secrets: [secret] }

/** A connection to a server that answers so; one without answers has neither resources nor prompts. */
async function connected(answers: Readonly<Record<string, Answer>>, more: Partial<McpConnection> = {}) {
  const has = (kind: string): object =>
    Object.keys(answers).some((name) => name.startsWith(kind)) ? { [kind]: {} } : {}
  const server = new Server(
    { name: 's', version: '1' },
    { capabilities: { ...has('resources'), ...has('prompts') } },
  )
  const asked: unknown[] = []
  for (const [method, answer] of Object.entries(answers)) {
    server.setRequestHandler(method as 'prompts/get', async ({ params }) => {
      asked.push(params)
      return (typeof answer === 'function' ? await answer() : answer) as never
    })
  }
  const client = new sdk.Client({ name: 'test', version: '1' })
  const [near, far] = sdk.InMemoryTransport.createLinkedPair()
  await server.connect(far)
  await client.connect(near)
  onTestFinished(() => client.close())
  const timers = manualClock()
  const connection = {
    server: { name: 'shop', options, secrets: findKnownSecrets(options) },
    ready: () => Promise.resolve({ client }),
    faults: () => ['it is away'],
    deadlines: new Set(),
    ...more,
  } as unknown as McpConnection
  return { connection, timers, asked, shared: { sdk, timers } as unknown as SharedParts }
}

describe('the resources of a server', () => {
  it('are listed with its templates, in its words without secrets', async () => {
    const { connection, shared } = await connected({
      'resources/list': {
        resources: [
          { uri: 'file:///a', name: 'a', description: `Of ${secret}.`, mimeType: 'text/plain', size: 5 },
          { uri: 'file:///b', name: 'b\u001b[2J' },
        ],
      },
      'resources/templates/list': {
        resourceTemplates: [{ uriTemplate: 'file:///{path}', name: 't', mimeType: 'image/png' }],
      },
    })
    expect(await listResources(connection, shared)).toEqual([
      { uri: 'file:///a', isTemplate: false, name: 'a', description: 'Of [secret].', mimeType: 'text/plain' },
      { uri: 'file:///b', isTemplate: false, name: 'b' },
      { uri: 'file:///{path}', isTemplate: true, name: 't', mimeType: 'image/png' },
    ])
  })

  it('are listed without templates where it has none, and it has nothing where it offers neither', async () => {
    const one = await connected({ 'resources/list': { resources: [{ uri: 'file:///a', name: 'a' }] } })
    expect(await listResources(one.connection, one.shared)).toEqual([
      { uri: 'file:///a', isTemplate: false, name: 'a' },
    ])
    const none = await connected({})
    expect(await listResources(none.connection, none.shared)).toEqual([])
    expect(await listPrompts(none.connection, none.shared)).toEqual([])
  })

  it.each<[string, readonly object[], readonly object[]]>([
    ['a text', [{ uri: 'a', text: `of ${secret}` }], [{ type: 'text', text: 'of [secret]' }]],
    [
      'a picture',
      [{ uri: 'a', blob: 'aGVs', mimeType: 'image/png' }],
      [{ type: 'image', mediaType: 'image/png', data: 'aGVs' }],
    ],
    [
      'several parts',
      [
        { uri: 'a', blob: 'aGVs' },
        { uri: 'b', text: 'b' },
      ],
      [
        { type: 'file', mediaType: 'application/octet-stream', data: 'aGVs' },
        { type: 'text', text: 'b' },
      ],
    ],
    ['nothing', [], []],
  ])('hold %s', async (_what, contents, parts) => {
    const { connection, shared, asked } = await connected({ 'resources/read': { contents } })
    expect(await readResource(connection, shared, 'file:///a')).toEqual(parts)
    expect(asked).toMatchObject([{ uri: 'file:///a' }])
  })

  it('hold a picture that is too large beside texts', async () => {
    const blob = 'aGVs'.repeat(20)
    const contents = [{ uri: 'a', blob, mimeType: 'image/png' }]
    const { connection, shared } = await connected(
      { 'resources/read': { contents } },
      {
        server: {
          name: 'shop',
          options: { ...options, maxResultCharacters: 1 },
          secrets: findKnownSecrets(options),
        },
      },
    )
    expect(await readResource(connection, shared, 'a')).toEqual([
      { type: 'image', mediaType: 'image/png', data: blob },
    ])
  })
})

describe('the prompts of a server', () => {
  it('are listed with what they ask for', async () => {
    const { connection, shared } = await connected({
      'prompts/list': {
        prompts: [
          {
            ...{ name: 'a', description: `Of ${secret}.` },
            arguments: [{ name: 'x', description: 'Which.', required: true }, { name: 'y' }],
          },
          { name: 'b' },
        ],
      },
    })
    expect(await listPrompts(connection, shared)).toEqual([
      {
        ...{ name: 'a', description: 'Of [secret].' },
        arguments: [
          { name: 'x', description: 'Which.', required: true },
          { name: 'y', required: false },
        ],
      },
      { name: 'b', arguments: [] },
    ])
  })

  it('are filled in', async () => {
    const said = { role: 'assistant', content: { type: 'text', text: 'Hello.' } }
    const { connection, shared, asked } = await connected({
      'prompts/get': { description: 'Greets.', messages: [said] },
    })
    expect(await readPrompt(connection, shared, 'greet', { to: 'Ada' })).toEqual({
      description: 'Greets.',
      messages: [{ role: 'assistant', content: [{ type: 'text', text: 'Hello.' }] }],
    })
    expect(asked).toMatchObject([{ name: 'greet', arguments: { to: 'Ada' } }])
    const plain = await connected({ 'prompts/get': { messages: [] } })
    expect(await readPrompt(plain.connection, plain.shared, 'greet', {})).toEqual({ messages: [] })
  })
})

describe('a request to a server', () => {
  const never = { 'prompts/list': () => new Promise<object>(() => {}) }

  it.each([
    ['within a minute', {}, 60_000],
    ['within the time of a call', { timeoutMs: 70_000 }, 70_000],
    ['within the whole time of a call', { timeoutMs: 900_000 }, 600_000],
    ['within a whole time that it is given', { timeoutMs: 50, maxTotalMs: 40 }, 40],
  ])('has to be answered %s', async (_what, more, milliseconds) => {
    const server = { name: 'shop', options: { ...options, ...more }, secrets: findKnownSecrets(options) }
    const { connection, shared, timers } = await connected(never, { server })
    const ended: unknown[] = []
    listPrompts(connection, shared).catch((error: unknown) => void ended.push(error))
    await tick()
    expect(connection.deadlines.size).toBe(1)
    timers.advance(milliseconds - 1)
    await tick()
    expect(ended).toEqual([])
    timers.advance(1)
    await tick()
    expect(ended).toMatchObject([
      { outcome: 'timed_out', message: 'The MCP server shop did not answer in time.' },
    ])
    expect([connection.deadlines.size, timers.pending]).toEqual([0, 0])
  })

  it('has its time from when there is a connection, and says where there was none', async () => {
    const connecting = Promise.withResolvers<never>()
    const ready = (signal: AbortSignal): Promise<never> => {
      signal.addEventListener('abort', () => connecting.reject(signal.reason))
      return connecting.promise
    }
    const late = await connected(never, { ready })
    const ending = listPrompts(late.connection, late.shared)
    late.timers.advance(60_000)
    await expect(ending).rejects.toMatchObject({
      outcome: 'timed_out',
      message: 'The MCP server shop did not answer in time. There was no connection to it.',
    })
    const slow = await connected(never)
    const opening = Promise.withResolvers<void>()
    const ended: unknown[] = []
    const readyLate = async (signal: AbortSignal) => {
      await opening.promise
      return await slow.connection.ready(signal)
    }
    const connection = Object.assign(Object.create(slow.connection) as McpConnection, { ready: readyLate })
    listPrompts(connection, slow.shared).catch((error: unknown) => void ended.push(error))
    slow.timers.advance(59_999)
    opening.resolve()
    await tick()
    slow.timers.advance(59_999)
    await tick()
    expect(ended).toEqual([])
    slow.timers.advance(1)
    await tick()
    expect(ended).toMatchObject([{ message: 'The MCP server shop did not answer in time.' }])
  })

  it('ends with what the server says, and leaves no timer', async () => {
    const { connection, shared, timers } = await connected({
      'prompts/list': () => Promise.reject(new Error(`no ${secret}`)),
    })
    await expect(listPrompts(connection, shared)).rejects.toMatchObject({
      ...{ name: 'ToolError', message: 'The server answered with an error: no [secret]' },
    })
    expect([connection.deadlines.size, timers.pending]).toEqual([0, 0])
  })

  it('says why there is no connection', async () => {
    const ready = () => Promise.reject(new Error('no'))
    const { connection, shared } = await connected({}, { ready })
    await expect(listPrompts(connection, shared)).rejects.toThrow(
      'The MCP server shop cannot be reached now (it is away). Nothing was run.',
    )
  })
})
