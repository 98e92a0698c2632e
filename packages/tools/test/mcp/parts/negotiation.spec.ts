// How the revision of the protocol is found out with each kind of server.
import { describe, expect, it } from 'vitest'
import { readNegotiation } from '../../../src/mcp/client.ts'

const url = 'http://127.0.0.1/mcp'
const [fiveSeconds, noEnd] = [5_000, 2 ** 31 - 1]

describe('the negotiation with a server', () => {
  it.each([
    ['a process', { command: 'x' }, 'legacy', fiveSeconds],
    ['a process that may be a newer one', { command: 'x', era: 'auto' }, 'auto', fiveSeconds],
    ['a URL', { url }, 'auto', noEnd],
    ['a URL of the older way', { url, type: 'sse' }, 'legacy', noEnd],
    ['a URL without a question', { url, era: 'legacy' }, 'legacy', noEnd],
    ['a URL of one revision', { url, era: '2026-07-28' }, { pin: '2026-07-28' }, noEnd],
  ] as const)('given %s, then %o begins with %o, and waits for %i ms', (_which, options, mode, timeoutMs) => {
    expect(readNegotiation(options)).toEqual({ mode, probe: { timeoutMs } })
  })
})
