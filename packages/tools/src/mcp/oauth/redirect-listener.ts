import { once } from 'node:events'
import type { Server } from 'node:http'
import { ConfigurationError } from '@tallystick/core'
import type { Timers } from '../../built-in/timers.ts'
import { httpServer } from '../transport/http-listener.ts'
import { resultOrAborted } from '../connection/waiting.ts'

/** Where a browser comes back to after the authorization page. Only this machine reaches it. */
export function redirectUrlOf(port: number): string {
  return `http://127.0.0.1:${port}/callback`
}

/** The way back of one browser. */
export interface Redirect {
  /**
   * Resolves with what the browser comes back with, or with nothing when it is stopped. Rejects when it takes too long, or with
   * the reason of the signal. Nothing is listened for afterwards.
   */
  answer(signal: AbortSignal): Promise<URLSearchParams | undefined>
  /** Listens no longer. */
  stop(): void
}

/** One port, which all that wait for a browser share. The state says which of them a browser comes back to. */
interface Listener {
  readonly server: Server
  readonly listening: Promise<unknown>
  readonly waiting: Map<string, (parameters?: URLSearchParams) => void>
}

const listeners = new Map<number, Listener>()

/**
 * Listens for a browser that comes back with a state, which other programs cannot guess. A request without it changes nothing.
 * Rejects where the port cannot be had.
 */
export async function expectRedirect(
  state: string,
  port: number,
  waitMs: number,
  timers: Timers,
): Promise<Redirect> {
  const listener = listeners.get(port) ?? listen(port)
  const { waiting, server } = listener
  const late = new AbortController()
  const cancelTimer = timers.schedule(waitMs, () => {
    late.abort(new Error(`no browser came back from the authorization page within ${waitMs} ms`))
    stop()
  })
  const came = new Promise<URLSearchParams | undefined>((resolve) => void waiting.set(state, resolve))
  const stop = (): void => {
    cancelTimer()
    waiting.get(state)?.()
    waiting.delete(state)
    if (waiting.size > 0 || listeners.get(port) !== listener) return
    listeners.delete(port)
    server.close()
    server.closeIdleConnections()
  }
  try {
    await listener.listening
  } catch (error) {
    stop()
    const why = error instanceof Error ? error.message : String(error)
    throw new ConfigurationError(
      `oauthServer: it cannot listen for the browser at ${redirectUrlOf(port)} (${why}). Give another redirectPort.`,
      { cause: error },
    )
  }
  return {
    stop,
    async answer(signal) {
      server.ref()
      return await resultOrAborted(came, AbortSignal.any([signal, late.signal])).finally(stop)
    },
  }
}

function listen(port: number): Listener {
  const waiting: Listener['waiting'] = new Map()
  const server = httpServer((request, response, { pathname, searchParams }) => {
    const state = searchParams.get('state') ?? ''
    const resolve = pathname === '/callback' && request.method === 'GET' ? waiting.get(state) : undefined
    response.setHeader('content-type', 'text/plain; charset=utf-8')
    response.setHeader('connection', 'close')
    if (resolve === undefined) {
      response.writeHead(400).end('No sign-in waits for this. Begin it again in the program.')
      return
    }
    waiting.delete(state)
    const refused = searchParams.has('error')
    response.end(
      refused ? 'The sign-in was refused. You can close this page.' : 'You can close this page now.',
    )
    resolve(searchParams)
  })
  // A browser that is not waited for yet keeps no process alive.
  server.unref()
  const listening = once(server, 'listening')
  server.listen(port, '127.0.0.1')
  const listener = { server, listening, waiting }
  listeners.set(port, listener)
  return listener
}
