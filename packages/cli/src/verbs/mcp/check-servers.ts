import type { McpManager, McpServerStatus } from '@tallystick/tools/mcp'
import type { CommandContext } from '../../command/command-context.ts'
import { type ExitCode, exitCodes } from '../../command/exit-code.ts'
import { counted } from '../../view/text/run-ending.ts'
import { statusRow } from './list-servers.ts'
import { type McpVerbOptions, withServers } from './open-servers.ts'

/** More tools than this, of all servers, cost many tokens at each turn, and models choose worse among them. */
const manyTools = 100

/** `mcp doctor`: what is wrong with each server, and with all of them together. Exit code 1 where one cannot be used. */
export function checkServers(context: CommandContext, options: McpVerbOptions): Promise<ExitCode> {
  const { json, print, say } = context
  return withServers(context, options, async (manager) => {
    for (const status of manager.servers) {
      await print(json ? `${JSON.stringify(statusRow(status, manager))}\n` : verdictText(context, status))
    }
    const broken = manager.servers.filter(({ state }) => state !== 'ready').length
    if (!json) for (const advice of adviceFor(manager)) say(advice)
    if (!json) {
      say(
        `${counted(manager.servers.length, 'server')}, ${broken} broken; ${counted(manager.tools.length, 'tool')}`,
      )
    }
    return broken === 0 ? exitCodes.ok : exitCodes.failed
  })
}

function verdictText(
  { paint }: CommandContext,
  { name, state, tools, protocolVersion, faults }: McpServerStatus,
): string {
  const isReady = state === 'ready'
  const mark = paint(isReady ? 'green' : 'red', isReady ? 'ok    ' : 'BROKEN')
  const about = isReady ? `  ${counted(tools, 'tool')}, revision ${protocolVersion ?? 'unknown'}` : ''
  const lines = faults.map((fault) => `          ${fault.replaceAll('\n', '\n          ')}`)
  return `${[`${mark}  ${name}${about}`, ...lines].join('\n')}\n`
}

function adviceFor({ tools, servers }: McpManager): readonly string[] {
  const advice: string[] = []
  if (tools.length > manyTools) {
    advice.push(
      `${tools.length} tools are many for one agent: leave some out with includeTools or excludeTools.`,
    )
  }
  const empty = servers.filter(({ state, tools: count }) => state === 'ready' && count === 0)
  for (const { name } of empty) advice.push(`${name} offers no tools.`)
  return advice
}
