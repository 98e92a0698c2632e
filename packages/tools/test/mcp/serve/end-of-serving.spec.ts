// How serving ends: over HTTP, and over the standard input of this process.
import { PassThrough } from 'node:stream'
import type { Json } from '@tallystick/core/vocabulary'
import { type ServedMcp, serveMcp } from '@tallystick/tools/mcp'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { connect, tick } from '../connected.ts'
import { ownTools } from '../servers/own-tools.ts'

/** A call of the tool `slow` that runs. */
async function runningCall(server: ServedMcp, era: 'auto' | 'legacy'): Promise<void> {
  const mcp = await connect({ own: { url: server.url ?? '', era } })
  const reports: Json[] = []
  const call = mcp.call('own', 'slow', {}, { onProgress: (data) => void reports.push(data) })
  call.catch(() => {})
  while (reports.length === 0) await tick()
}

describe('tools served over HTTP', () => {
  it('given a call of a client of an older revision, when they are closed, then the tool is stopped, and both ways to close are one', async () => {
    const { slow, stopped } = ownTools()
    const server = await serveMcp([slow], { http: {} })
    await runningCall(server, 'legacy')
    const closed = server.close()
    expect(stopped).toEqual(['the client cancelled the call'])
    expect(server.close()).toBe(closed)
    expect(server[Symbol.asyncDispose]()).toBe(closed)
    await closed
    await server.closed
    await expect(fetch(server.url ?? '')).rejects.toThrow('fetch failed')
  })
})

describe('tools served over standard input and output', () => {
  it('given a client that asks, when its side ends, then a tool that runs is stopped, and serving is over', async () => {
    const [input, output] = [new PassThrough(), new PassThrough()]
    const spies = [
      vi.spyOn(process, 'stdin', 'get').mockReturnValue(input as never),
      vi.spyOn(process, 'stdout', 'get').mockReturnValue(output as never),
    ]
    onTestFinished(() => spies.forEach((spy) => spy.mockRestore()))
    const { slow, stopped } = ownTools()
    const server = await serveMcp([slow])
    expect(server.url).toBeUndefined()
    const ask = (message: object): void =>
      void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    const clientInfo = { name: 'test', version: '1' }
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
    ask({ id: 1, method: 'initialize', params })
    ask({ method: 'notifications/initialized' })
    ask({ id: 2, method: 'tools/call', params: { name: 'slow', _meta: { progressToken: 7 } } })
    let said = ''
    output.on('data', (chunk: Buffer) => (said += String(chunk)))
    while (!said.includes('"progressToken":7')) await tick()
    input.end()
    await server.closed
    expect(stopped).toEqual(['the client cancelled the call'])
  })
})
