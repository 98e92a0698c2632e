import { existsSync, readFileSync } from 'node:fs'
import {
  type McpManager,
  type McpOptions,
  type McpServer,
  mcpTools,
  type StdioServer,
} from '@tallystick/tools/mcp'
import { joinText } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { firstValueFrom } from 'rxjs'
import { expect, onTestFinished } from 'vitest'
import { ownServer } from './servers/real-servers.ts'

/** Connects to servers, and closes them after the test. */
export async function connect(
  servers: Readonly<Record<string, McpServer>>,
  options: Partial<McpOptions> = {},
): Promise<McpManager> {
  const manager = await mcpTools({ servers, ...options })
  onTestFinished(() => manager.close())
  return manager
}

/** One server of tools that go wrong on demand, under the name `bad`. */
export async function connectFaulty(
  more: Partial<StdioServer> = {},
  options: Partial<McpOptions> = {},
): Promise<McpManager> {
  const manager = await connect({ bad: ownServer('faulty-server.ts', [], more) }, options)
  expect(manager.servers).toMatchObject([{ name: 'bad', state: 'ready' }])
  return manager
}

/** What a tool of that server answers, as text. */
export async function said(manager: McpManager, tool: string, input: JsonObject = {}): Promise<string> {
  return joinText(await manager.call('bad', tool, input))
}

/** Whether a process is alive. A process that has ended and whose parent has not asked about it is not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    const stat = `/proc/${pid}/stat`
    return !existsSync(stat) || !readFileSync(stat, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}

/** Resolves with the next change of a list of tools. */
export function nextChange(manager: McpManager): Promise<unknown> {
  return firstValueFrom(manager.changes$)
}

/** Lets what has arrived be read. */
export function tick(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}
