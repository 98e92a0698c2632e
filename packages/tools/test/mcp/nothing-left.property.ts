// Whatever servers do in the calls of a program, and whenever those are aborted: after `close` nothing is left of it.
import type { Clock } from '@tallystick/core'
import { mcpTools } from '@tallystick/tools/mcp'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { effort, tries } from '../../../../scripts/testing/effort.ts'
import { hostTimers } from '../../src/host.ts'
import { isAlive } from './connected.ts'
import { type ServedUrl, sessionServer } from './servers/http-servers.ts'
import { ownServer } from './servers/real-servers.ts'

/** The host's timers, and how many of them are still to go off. */
function countedTimers(): Pick<Clock, 'schedule'> & { readonly open: () => number } {
  const open = new Set<object>()
  return {
    open: () => open.size,
    schedule(delayMs, callback) {
      const one = {}
      open.add(one)
      const cancel = hostTimers.schedule(delayMs, () => {
        open.delete(one)
        callback()
      })
      return () => {
        open.delete(one)
        cancel()
      }
    },
  }
}

interface Call {
  readonly server: string
  readonly tool: string
  /** After so many turns of the event loop the call is aborted; never where absent. */
  readonly abortAfter: number | undefined
  /** Whether the next call waits for this one. */
  readonly isAwaited: boolean
}

const call: fc.Arbitrary<Call> = fc.record({
  server: fc.constantFrom('process', 'url'),
  tool: fc.constantFrom('echo', 'steps', 'hang', 'die', 'noisy', 'huge', 'throw', 'spawn', 'gone'),
  abortAfter: fc.option(fc.nat({ max: 20 }), { nil: undefined }),
  isAwaited: fc.boolean(),
})

interface Program {
  readonly calls: readonly Call[]
  /** After so many turns of the event loop it closes, whatever is under way. */
  readonly closeAfter: number
}

const program: fc.Arbitrary<Program> = fc.record({
  calls: fc.array(call, { minLength: 1, maxLength: 6 }),
  closeAfter: fc.nat({ max: 200 }),
})

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => void setImmediate(resolve))
}

/** How many processes this one holds on to. */
function processes(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap').length
}

/** Runs a program, waits until none of its processes is left, and returns how many timers are. */
async function timersLeftOf({ calls, closeAfter }: Program, url: ServedUrl): Promise<number> {
  const before = processes()
  const timers = countedTimers()
  const pids: number[] = []
  const servers = {
    process: ownServer('faulty-server.ts', []),
    url: { url: url.url },
    missing: { command: 'no-such-command' },
  }
  const mcp = await mcpTools({ servers, timers, reconnect: { baseMs: 1 } })
  const pidOf = async (tool: string): Promise<void> => {
    const [part] = await mcp.call('process', tool, {})
    if (part?.type === 'text') pids.push(Number(part.text))
  }
  await pidOf('pid')
  await pidOf('spawn')
  const under: Promise<unknown>[] = []
  const driven = (async () => {
    for (const { server, tool, abortAfter, isAwaited } of calls) {
      // At the URL they would be those of this process.
      if ((tool === 'die' || tool === 'spawn') && server === 'url') continue
      const abort = new AbortController()
      const input = { text: 'a', count: 3, length: 1_000 }
      const ending = mcp.call(server, tool, input, { signal: abort.signal }).catch(() => {})
      under.push(ending)
      if (abortAfter !== undefined) void turns(abortAfter).then(() => abort.abort())
      if (isAwaited && (tool !== 'hang' || abortAfter !== undefined)) await ending
    }
  })()
  await turns(closeAfter)
  await mcp.close()
  await driven
  await Promise.all(under)
  // The system takes a while to end what it was told to end. The time limit of the test fails it where something stays.
  while (pids.some(isAlive) || processes() > before) await turns(1)
  return timers.open()
}

it('leaves no timer, process or connection after close', async () => {
  const server = await sessionServer()
  await fc.assert(
    fc.asyncProperty(program, async (given) => {
      expect(await timersLeftOf(given, server)).toBe(0)
    }),
    { numRuns: effort({ quick: 1, thorough: tries(40) }) },
  )
})
