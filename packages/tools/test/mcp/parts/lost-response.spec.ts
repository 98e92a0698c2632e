import { getEventListeners } from 'node:events'
import type { JSONRPCMessage, Transport, TransportSendOptions } from '@modelcontextprotocol/client'
import { manualClock } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { pause, waitUnlessAborted } from '../../../src/mcp/deadline.ts'
import { lostResponseCode, withLostResponses, watchStreams } from '../../../src/mcp/fetch.ts'
import { tick } from '../connected.ts'

// What a client hears of a request whose stream of events ends without the answer.

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

// When a server counts as gone by its streams of events.

const url = 'http://127.0.0.1:9/mcp'
const stream = { method: 'GET', headers: { accept: 'application/json, text/event-stream' } }

/** A fetch that answers with these statuses, one after the other, and cannot connect for 0; and how often the server was gone. */
function watched(...statuses: readonly number[]) {
  const left = [...statuses]
  let gone = 0
  const refused = new TypeError('fetch failed')
  const inner = async (): Promise<Response> => {
    const status = left.shift() ?? 0
    if (status === 0) throw refused
    return new Response(null, { status })
  }
  const ask = watchStreams(inner, url, () => gone++)
  const asked = async (init: RequestInit = stream, at: string | URL = url): Promise<unknown> =>
    await ask(at, init).then(
      ({ status }) => status,
      (error: unknown) => error === refused,
    )
  return { asked, gone: () => gone }
}

describe('a server with a stream of events', () => {
  it('is gone each time that the stream was open once and cannot be opened, and the failure is passed on', async () => {
    const { asked, gone } = watched(200, 0, 0)
    expect(await asked()).toBe(200)
    expect(gone()).toBe(0)
    expect([await asked(), await asked(stream, new URL(url))]).toEqual([true, true])
    expect(gone()).toBe(2)
  })

  it('is there as long as it answers, whatever it answers', async () => {
    const { asked, gone } = watched(200, 503, 404, 0)
    expect([await asked(), await asked(), await asked()]).toEqual([200, 503, 404])
    expect(gone()).toBe(0)
    await asked()
    expect(gone()).toBe(1)
  })

  it('is not gone where a stream was never open', async () => {
    const { asked, gone } = watched(405, 0)
    expect([await asked(), await asked()]).toEqual([405, true])
    expect(gone()).toBe(0)
  })

  it.each<[string, RequestInit, string?]>([
    ['a call', { ...stream, method: 'POST' }],
    ['what is not a stream', { method: 'GET', headers: { accept: 'application/json' } }],
    ['a request without headers', {}],
    ['another address', stream, 'http://127.0.0.1:9/.well-known/oauth-authorization-server'],
    ['a request that was aborted', { ...stream, signal: AbortSignal.abort() }],
  ])('is not gone where %s fails', async (_what, init, at) => {
    const { asked, gone } = watched(200, 0)
    await asked()
    expect(await asked(init, at)).toBe(true)
    expect(gone()).toBe(0)
  })

  it('is asked for the stream with GET where no method is named, as the older transport does', async () => {
    const { asked, gone } = watched(200, 0)
    await asked({ headers: stream.headers })
    await asked({ headers: stream.headers })
    expect(gone()).toBe(1)
  })
})

// What is waited for, until a signal aborts; afterwards neither a timer nor a listener is left.

/** A signal, how it is aborted, and how many listen to it. */
function signalOf() {
  const abort = new AbortController()
  return {
    signal: abort.signal,
    abort: () => abort.abort(new Error('enough')),
    listeners: () => getEventListeners(abort.signal, 'abort').length,
  }
}

async function settled(promise: Promise<unknown>): Promise<unknown> {
  let how: unknown = 'pending'
  promise.then(
    (value) => (how = value ?? 'resolved'),
    (error: Error) => (how = error.message),
  )
  await tick()
  return how
}

describe('a pause', () => {
  it('given its time, when that is over, then it ends', async () => {
    const { signal, listeners } = signalOf()
    const clock = manualClock()
    const paused = pause(100, clock, signal)
    clock.advance(99)
    expect(await settled(paused)).toBe('pending')
    clock.advance(1)
    expect(await settled(paused)).toBe('resolved')
    expect([listeners(), clock.pending]).toEqual([0, 0])
  })

  it('given a signal, when it aborts before or meanwhile, then it ends at once', async () => {
    const { signal, abort, listeners } = signalOf()
    const clock = manualClock()
    const paused = pause(100, clock, signal)
    abort()
    expect(await settled(paused)).toBe('resolved')
    expect(await settled(pause(100, clock, signal))).toBe('resolved')
    expect([listeners(), clock.pending]).toEqual([0, 0])
  })
})

describe('a result', () => {
  it('given it comes or fails before the signal aborts, then it is what is waited for', async () => {
    const { signal, listeners } = signalOf()
    expect(await settled(waitUnlessAborted(Promise.resolve('there'), signal))).toBe('there')
    expect(await settled(waitUnlessAborted(Promise.reject(new Error('no')), signal))).toBe('no')
    expect(listeners()).toBe(0)
  })

  it('given a signal, when it aborts before or meanwhile, then its reason is what is heard', async () => {
    const { signal, abort } = signalOf()
    const never = new Promise(() => {})
    const waited = waitUnlessAborted(never, signal)
    expect(await settled(waited)).toBe('pending')
    abort()
    expect(await settled(waited)).toBe('enough')
    expect(await settled(waitUnlessAborted(never, signal))).toBe('enough')
  })
})
