// What a client hears of a request whose stream of events ends without the answer.
import type { JSONRPCMessage, Transport, TransportSendOptions } from '@modelcontextprotocol/client'
import { describe, expect, it } from 'vitest'
import { lostResponseCode, withLostResponses } from '../../../src/mcp/fetch.ts'
import { tick } from '../connected.ts'

/** A transport that hears of lost responses, and what a client sends and hears through it. */
function prepared() {
  const sent: { message: unknown; options: TransportSendOptions | undefined }[] = []
  const heard: JSONRPCMessage[] = []
  let fault: Error | undefined
  const transport: Transport = {
    start: async () => {},
    close: async () => {},
    async send(message, options) {
      sent.push({ message, options })
      if (fault) throw fault
    },
  }
  const open = withLostResponses(transport)
  const { onmessage } = transport
  // A client has the listener before it hear each message first.
  const hears: Transport['onmessage'] = (message) => {
    onmessage?.(message)
    heard.push(message)
  }
  Object.assign(transport, { onmessage: hears })
  const end = (index: number): void => sent[index]?.options?.onRequestStreamEnd?.()
  const breaks = (error: Error): void => void (fault = error)
  return { transport, sent, heard, end, open, breaks }
}

const request = (id: number): JSONRPCMessage => ({ jsonrpc: '2.0', id, method: 'tools/call' })

describe('a request whose stream ends', () => {
  it('given no answer, then an error is heard in its place, once, with what was last reported', async () => {
    const { transport, sent, heard, end } = prepared()
    await transport.send(request(1), { relatedRequestId: 7 })
    await transport.send(request(2))
    expect(sent[0]?.options).toMatchObject({ relatedRequestId: 7 })
    // A question of the server, under the same number, is no answer.
    transport.onmessage?.({ jsonrpc: '2.0', id: 1, method: 'ping' })
    end(0)
    end(0)
    transport.onerror?.(new Error('reset'))
    end(1)
    const lost = (id: number, why = '') => ({
      ...{ jsonrpc: '2.0', id },
      error: { code: -32_098, message: `The connection ended before the answer${why}.` },
    })
    expect(heard.slice(1)).toEqual([lost(1), lost(2, ' (reset)')])
    expect(lostResponseCode).toBe(-32_098)
  })

  it('given its answer, then nothing more is heard', async () => {
    const { transport, heard, end } = prepared()
    await transport.send(request(1))
    transport.onmessage?.({ jsonrpc: '2.0', id: 1, result: {} })
    end(0)
    expect(heard).toHaveLength(1)
  })
})

describe('a request that waits', () => {
  it('given it cannot be sent, then it waits no more, and its end is not heard', async () => {
    const { transport, heard, end, open, breaks } = prepared()
    breaks(new Error('refused'))
    await expect(transport.send(request(1))).rejects.toThrow('refused')
    expect(open.size).toBe(0)
    end(0)
    expect(heard).toEqual([])
  })

  it('given it is taken back by a notification or its signal, then it waits no more', async () => {
    const { transport, open } = prepared()
    const given = new AbortController()
    await transport.send(request(1), { requestSignal: given.signal })
    await transport.send(request(2))
    await transport.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } })
    expect(open.size).toBe(1)
    given.abort()
    expect(open.size).toBe(0)
  })

  it('given others wait too, when the last one has its answer, then none waits', async () => {
    const { transport, open } = prepared()
    await open.idle()
    await Promise.all([transport.send(request(1)), transport.send(request(2))])
    const ended: number[] = []
    const idle = Promise.all([open.idle(), open.idle()]).then(() => ended.push(open.size))
    transport.onmessage?.({ jsonrpc: '2.0', id: 2, result: {} })
    await tick()
    expect(ended).toEqual([])
    transport.onmessage?.({ jsonrpc: '2.0', id: 1, result: {} })
    await idle
    expect(ended).toEqual([0])
  })
})

describe('what else is sent', () => {
  it('given a notification, an answer or a subscription, then it is sent as it is', async () => {
    const { transport, sent, end } = prepared()
    const ends: string[] = []
    const options = { onRequestStreamEnd: () => void ends.push('ended') }
    await transport.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    await transport.send({ jsonrpc: '2.0', id: 3, result: {} })
    await transport.send(request(4), options)
    expect(sent.map((each) => each.options)).toEqual([undefined, undefined, options])
    end(2)
    expect(ends).toEqual(['ended'])
  })
})
