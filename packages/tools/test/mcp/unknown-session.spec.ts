// HTTP 400 of a server: one that does not know the session ran nothing, another may have.
import { describe, expect, it } from 'vitest'
import { isUnknownSession } from '../../src/mcp/fetch.ts'
import { connect, said } from './connected.ts'
import { sessionServer } from './servers/http-servers.ts'

const unknown = [
  'Error POSTing to endpoint: {"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}',
  'Bad Request: Mcp-Session-Id header is required',
  'Bad Request: Server not initialized',
  'Missing session ID',
  'missing sessionId',
  'No session',
  'No such session: 7',
  'Unknown session 0197-aa',
  'Unrecognized session',
  'Invalid session_id',
  'Expired session.',
  'Could not find session for id 7',
  'Session not found',
  'Session 0197aa does not exist',
  'The session has expired',
  'session_expired',
  'Session has been terminated',
  'The session id is not valid.',
  'session id is invalid',
  'Session ID missing',
  'Session unknown',
  'the session is not known',
]

const other = [
  'The session is full: 12 of 12 seats are taken.',
  'Every session of the course needs a date.',
  'You obsession not found',
  'Session 7 was booked; the room was not found',
  'Possession unknown',
  'The order is unknown. Ask the session chair.',
  'invalid date of session',
  `${'x'.repeat(2_000)} session not found`,
  'Invalid arguments',
  '',
]

describe('an answer with HTTP 400', () => {
  it.each(unknown)('%j says that the session is unknown', (text) => {
    expect(isUnknownSession(text)).toBe(true)
  })

  it.each(other)('%j does not', (text) => {
    expect(isUnknownSession(text)).toBe(false)
  })

  it.each([
    ['No valid session ID provided', 2],
    ['The session is full.', 1],
  ])('"%s" has the call made %i times', async (body, times) => {
    const server = await sessionServer()
    let calls = 0
    const gateway: typeof fetch = async (url, init) => {
      if (typeof init?.body !== 'string' || !init.body.includes('tools/call')) return await fetch(url, init)
      return ++calls === 1 ? new Response(body, { status: 400 }) : await fetch(url, init)
    }
    const manager = await connect({ bad: { url: server.url, fetch: gateway } }, { reconnect: { baseMs: 1 } })
    const answer = await said(manager, 'echo', { text: 'hi' }).catch((error: Error) => error.message)
    expect(answer).toBe(
      times === 2 ? 'hi' : `The server answered with HTTP 400: Error POSTing to endpoint: ${body}`,
    )
    expect(calls).toBe(times)
  })
})
