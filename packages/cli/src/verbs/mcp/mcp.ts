import { omitUndefined } from '@tallystick/core/kit'
import { type Command, Argument } from 'commander'
import type { CommandContext } from '../../command/command-context.ts'
import type { Done } from '../../verbs.ts'
import { CommandError, type ExitCode } from '../../command/exit-code.ts'
import { callServer } from './call-server.ts'
import { checkServers } from './check-servers.ts'
import { listServers } from './list-servers.ts'
import type { McpVerbOptions } from './open-servers.ts'

const actions = ['list', 'call', 'doctor'] as const

/** Declares what `mcp` takes. */
export function declareMcp(verb: Command, context: CommandContext, done: Done): void {
  verb
    .description(
      'list the tools of MCP servers, call one of them, or find out what is wrong with the servers; their programs are started for that',
    )
    .addArgument(new Argument('<action>', 'what to do').choices(actions))
    .argument(
      '<config>',
      'file of servers (of Claude Desktop, Cursor …, or a tallystick.config.ts with mcp), or the program whose file to read',
    )
    .argument('[server]', 'only this server; call needs it')
    .argument('[tool]', 'call: the tool, by its name at the server')
    .argument('[input]', 'call: the input, as JSON (default: {})')
    .option(
      '--from <program>',
      'program of the file, if its name does not tell: claude-desktop, claude-code, cursor, vscode, codex, gemini, windsurf',
    )
    .option('--json', 'print JSON, a line for each server; errors too, on stderr')
    .action(async (...given: readonly unknown[]) => {
      const [action, config, server, tool, input] = given as Words
      const { from } = verb.opts<{ readonly from?: string }>()
      const options: McpVerbOptions = { config, ...omitUndefined({ from, server }) }
      done(await carryOut(context, action, options, { tool, input }))
    })
}

type Action = (typeof actions)[number]
type Words = readonly [action: Action, config: string, server?: string, tool?: string, input?: string]

async function carryOut(
  context: CommandContext,
  action: Action,
  options: McpVerbOptions,
  { tool, input = '{}' }: { readonly tool: string | undefined; readonly input: string | undefined },
): Promise<ExitCode> {
  if (action !== 'call' && tool !== undefined) {
    throw new CommandError('usage', `mcp ${action} takes a configuration and at most one server.`)
  }
  if (action === 'list') return await listServers(context, options)
  if (action === 'doctor') return await checkServers(context, options)
  const { server } = options
  if (server === undefined || tool === undefined) {
    throw new CommandError(
      'usage',
      'mcp call takes a server and one of its tools: mcp call CONFIG SERVER TOOL INPUT.',
    )
  }
  return await callServer(context, { ...options, server, tool, input })
}
