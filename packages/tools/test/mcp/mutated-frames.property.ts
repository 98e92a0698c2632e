import { once } from 'node:events'
import { connect as connectTo } from 'node:net'
import { joinText } from '@tallystick/core'
import { manualClock } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { mcpTools, serveMcp } from '@tallystick/tools/mcp'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { tries } from '../../../../scripts/testing/effort.ts'
import { findUnclearWords, mutatedBytes } from '../../../../scripts/testing/mutated.ts'
import { connect, tick } from './connected.ts'
import { type Asked, scriptedServer } from './servers/scripted-server.ts'

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Answers of a server by method, whole. */
const answers = {
  initialize: {
    result: {
      ...{ protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } } },
      ...{ serverInfo: { name: 'office', version: '1' }, instructions: 'Look first.' },
    },
  },
  'tools/list': {
    result: {
      tools: [
        {
          ...{ name: 'look', title: 'Look', description: 'Looks.', annotations: { readOnlyHint: true } },
          inputSchema: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
          outputSchema: { type: 'object', properties: { seen: { type: 'number' } } },
        },
      ],
      nextCursor: undefined,
    },
  },
  'tools/call': {
    result: {
      content: [
        { type: 'text', text: 'seen' },
        { type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
        { type: 'resource_link', uri: 'file:///a', name: 'a', mimeType: 'text/plain', size: 4 },
      ],
      structuredContent: { seen: 1 },
      isError: false,
    },
  },
}
type Method = keyof typeof answers
const methods = Object.keys(answers) as Method[]

/** What the id of a request stands for until it is known. */
const anyId = '"the id of the request"'
const whole = Object.fromEntries(
  methods.map((method) => [
    method,
    `{"jsonrpc":"2.0","id":${anyId},${JSON.stringify(answers[method]).slice(1)}`,
  ]),
) as Readonly<Record<Method, string>>

interface Frames {
  readonly method: Method
  readonly bytes: Uint8Array
  readonly isStream: boolean
}

const frames: fc.Arbitrary<Frames> = fc
  .tuple(fc.constantFrom(...methods), fc.boolean())
  .chain(([method, isStream]) => {
    const text = isStream ? `event: message\nid: 1\ndata: ${whole[method]}\n\n` : whole[method]
    return mutatedBytes([encode(text)]).map((bytes) => ({ method, bytes, isStream }))
  })

describe('frames of MCP in which something is wrong', () => {
  it('of a server end what was asked, in words that say what happened', async () => {
    await fc.assert(
      fc.asyncProperty(frames, async ({ method: wrong, bytes, isStream }) => {
        let answered = 0
        const answer =
          (method: Method) =>
          ({ response, id }: Asked): void => {
            const isWrong = method === wrong
            const type = isWrong && isStream ? 'text/event-stream' : 'application/json'
            const text = isWrong ? Buffer.from(bytes).toString('latin1') : whole[method]
            response.writeHead(200, { 'content-type': type, 'mcp-session-id': 'one' })
            response.end(Buffer.from(text.replaceAll(anyId, String(id)), 'latin1'), () => answered++)
          }
        const { url } = await scriptedServer({
          ...Object.fromEntries(methods.map((method) => [method, answer(method)])),
        })
        const clock = manualClock()
        const options = { timeoutMs: 1_000, era: 'legacy' as const, trusted: true }
        /** Lets time pass only where nothing else happens any more. */
        const settled = async <T>(asked: Promise<T>): Promise<T | { readonly error: unknown }> => {
          const done = asked.catch((error: unknown) => ({ error }))
          const settling = { isOver: false }
          void done.finally(() => (settling.isOver = true))
          for (let before = -1; !settling.isOver; before = answered) {
            for (let turn = 0; turn < 30 && !settling.isOver; turn++) await tick()
            if (before === answered) clock.advance(1_000)
          }
          return await done
        }
        const words: string[] = []
        const manager = await settled(mcpTools({ servers: { own: { url, ...options } }, timers: clock }))
        if ('error' in manager) words.push((manager.error as Error).message)
        else {
          words.push(...manager.servers.flatMap(({ faults }) => faults))
          for (const { origin } of manager.tools) {
            const said = await settled(manager.call('own', origin?.name ?? '', { at: 'tea' }))
            words.push('error' in said ? (said.error as Error).message : joinText(said))
          }
          await settled(manager.close())
        }
        expect(words.flatMap((each) => findUnclearWords(each) ?? [])).toEqual([])
      }),
      { numRuns: tries(600) },
    )
  })

  it('of a client are refused by a server of our tools, which serves on', async () => {
    const look = defineTool({
      name: 'look',
      description: 'Looks.',
      input: { type: 'object', properties: { at: { type: 'string' } } },
      effect: 'read',
      execute: () => 'seen',
    })
    const server = await serveMcp([look], { http: {} })
    onTestFinished(() => server.close())
    const url = new URL(server.url ?? '')
    const write = (body: Uint8Array): Uint8Array =>
      Buffer.concat([
        encode(
          `POST ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\nconnection: close\r\ncontent-type: application/json\r\n` +
            `accept: application/json, text/event-stream\r\ncontent-length: ${body.length}\r\n\r\n`,
        ),
        body,
      ])
    const client = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'c', version: '1' },
    }
    const bodies = [
      { jsonrpc: '2.0', id: 1, method: 'initialize', params: client },
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 2, method: 'tools/list', params: { cursor: 'x' } },
      { jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'look', arguments: { at: 'tea' } } },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 3, reason: 'enough' } },
    ].map((body) => encode(JSON.stringify(body)))
    const requests = fc.oneof(mutatedBytes(bodies).map(write), mutatedBytes(bodies.map(write)))
    await fc.assert(
      fc.asyncProperty(requests, async (request) => {
        const socket = connectTo(Number(url.port), url.hostname)
        let text = ''
        socket.on('data', (data) => (text += data.toString('latin1')))
        socket.on('error', () => {})
        const closed = once(socket, 'close')
        socket.end(request)
        await closed
        const statuses = [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status))
        expect(statuses.filter((status) => status >= 500)).toEqual([])
        expect(text === '' ? undefined : findUnclearWords(text)).toBe(undefined)
      }),
      { numRuns: tries(1_500) },
    )
    expect((await connect({ own: { url: String(url) } })).servers).toMatchObject([{ state: 'ready' }])
  })
})
