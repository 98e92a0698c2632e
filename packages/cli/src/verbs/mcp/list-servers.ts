import type { McpManager, McpServerStatus } from '@tallystick/tools/mcp'
import type { CommandContext } from '../../command/command-context.ts'
import { type ExitCode, exitCodes } from '../../command/exit-code.ts'
import { type McpVerbOptions, withServers } from './open-servers.ts'

/** `mcp list`: each server and its tools. Exit code 1 where a server cannot be used. */
export function listServers(context: CommandContext, options: McpVerbOptions): Promise<ExitCode> {
  return withServers(context, options, async (manager) => {
    for (const status of manager.servers) {
      await context.print(
        context.json
          ? `${JSON.stringify(statusRow(status, manager))}\n`
          : serverText(context, status, manager),
      )
    }
    return manager.servers.every(({ state }) => state === 'ready') ? exitCodes.ok : exitCodes.failed
  })
}

/** A server and its tools, as JSON. */
export function statusRow(status: McpServerStatus, manager: McpManager): object {
  const tools = toolsOf(status, manager).map(({ name, origin, effect, description }) => ({
    name,
    tool: origin?.name,
    effect,
    description,
  }))
  return { ...status, tools }
}

function serverText({ paint }: CommandContext, status: McpServerStatus, manager: McpManager): string {
  const { name, state, server, transport, protocolVersion } = status
  const about = [server && `${server.name} ${server.version}`, transport, protocolVersion]
    .filter(Boolean)
    .join(', ')
  const head = `${paint('bold', name)}  ${paint(state === 'ready' ? 'green' : 'red', state)}${about === '' ? '' : `  ${about}`}`
  const tools = toolsOf(status, manager).map(
    (tool) => `  ${tool.name}  ${tool.effect}  ${firstLine(tool.description)}`,
  )
  const faults = status.faults.map((fault) => `  ${paint('red', fault.replaceAll('\n', '\n    '))}`)
  return `${[head, ...faults, ...tools].join('\n')}\n`
}

function toolsOf({ name }: McpServerStatus, manager: McpManager): McpManager['tools'] {
  return manager.tools.filter(({ origin }) => origin?.server === name)
}

function firstLine(description: string): string {
  const [line = ''] = description.split('\n')
  return line.length > 100 ? `${line.slice(0, 99)}…` : line
}
