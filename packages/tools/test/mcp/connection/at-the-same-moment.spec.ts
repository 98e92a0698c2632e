// Connections that end at the very moment at which something else happens.
import * as sdk from '@modelcontextprotocol/client'
import { manualClock } from '@tallystick/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { McpConnection } from '../../../src/mcp/connection.ts'
import type { SharedParts } from '../../../src/mcp/client.ts'
import { findKnownSecrets } from '../../../src/mcp/secrets.ts'
import type { McpServer } from '../../../src/mcp/options.ts'
import { isAlive, tick } from '../connected.ts'
import { scriptedServer } from '../servers/scripted-server.ts'
import { shellServer } from '../servers/shell-server.ts'

/** A connection that has made its first attempt, and the processes that were started for it. */
async function started(
  options: McpServer,
  more: Partial<SharedParts> = {},
): Promise<{ readonly connection: McpConnection; readonly processes: readonly number[] }> {
  const { connection, processes } = prepared(options, more)
  await connection.start()
  return { connection, processes }
}

/** A connection that has not begun. */
function prepared(
  options: McpServer,
  more: Partial<SharedParts> = {},
): { readonly connection: McpConnection; readonly processes: readonly number[] } {
  const processes: number[] = []
  const shared: SharedParts = {
    ...{
      sdk,
      hooks: {},
      sampling: { maxPerCall: 1, maxTokens: 1 },
      traceparent: undefined,
      timers: manualClock(),
      random: () => 0,
    },
    guard: { add: (pid) => void processes.push(pid), remove: () => {}, close: async () => {} },
    ...{ environment: process.env, backoff: { baseMs: 1, capMs: 1, maxAttempts: 0 }, onChange: () => {} },
    ...more,
  }
  const server = { name: 'own', options, secrets: findKnownSecrets(options) }
  const connection = new McpConnection(server, shared)
  onTestFinished(() => connection.close())
  return { connection, processes }
}

describe('a connection', () => {
  it('given its tools were listed, when it ends before they are read, then it has failed, and says how it ended', async () => {
    class Ending extends sdk.Client {
      override async listTools(
        ...given: Parameters<sdk.Client['listTools']>
      ): ReturnType<sdk.Client['listTools']> {
        const listed = await super.listTools(...given)
        this.onclose?.()
        return listed
      }
    }
    const { url, asked } = await scriptedServer()
    const { connection } = await started({ url, era: 'legacy' }, { sdk: { ...sdk, Client: Ending } })
    expect([connection.state(), connection.faults(), connection.current()]).toEqual([
      ...['failed', ['its connection ended'], undefined],
    ])
    expect(asked.at(-1)).toBe('DELETE')
  })

  it('given it is closed, when it is lost in the same moment, then no process is started', async () => {
    const { connection, processes } = await started(shellServer({ tools: { work: 'answer' } }))
    const closed = connection.close()
    connection.replace(connection.current()!)
    await closed
    expect([connection.state(), processes.length]).toEqual(['closed', 1])
  })

  it('given it begins, when it is closed, then the process has ended first', async () => {
    const { connection, processes } = prepared(shellServer({ first: 'read -r line', tools: {} }))
    const begun = connection.start()
    while (processes.length === 0) await tick()
    await connection.close()
    expect(processes.map(isAlive)).toEqual([false])
    await begun
    expect(connection.state()).toBe('closed')
  })

  it('given it is ready, then no time of its start runs any more', async () => {
    const { url } = await scriptedServer()
    const { connection } = await started({ url, era: 'legacy' })
    expect([connection.state(), connection.deadlines.size]).toEqual(['ready', 0])
  })
})
