import { basename, dirname, extname, resolve } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { getOwn, isJsonObject, omitUndefined, readJson, formatErrorSentence } from '@tallystick/core/internal'
import type { JsonObject, ResultPart } from '@tallystick/core/vocabulary'
import { ToolError } from '@tallystick/tools'
import {
  loadMcpConfig,
  type McpHost,
  mcpHosts,
  type McpManager,
  type McpOptions,
  type McpServerStatus,
  mcpTools,
} from '@tallystick/tools/mcp'
import { Argument, type Command } from '@commander-js/extra-typings'
import { type CommandContext, printEither } from '../command/context.ts'
import { CommandError, type ExitCode, exitCodes } from '../command/exit-code.ts'
import { formatCount } from '../command/text.ts'
import { readMcpOptions } from '../drive/config.ts'
import { fitText } from '../terminal/text-width.ts'
import { runUntilStopped } from '../terminal/wait.ts'
import type { Done } from '../verbs.ts'

interface McpVerbOptions {
  readonly config: string
  readonly from?: string
  readonly server?: string
}

/** Starts the servers of a configuration, and ends them after `use`, or when the user stops the command. */
async function withServers<Result>(
  context: CommandContext,
  options: McpVerbOptions,
  use: (manager: McpManager, stop: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const given = await readOptions(context, options)
  return await runUntilStopped(async (stop$) => {
    const stop = new AbortController()
    const manager = await mcpTools(given)
    const stopping = stop$.subscribe(() => {
      stop.abort(new CommandError('refused', 'The command was stopped.'))
      void manager.close()
    })
    try {
      return await use(manager, stop.signal)
    } finally {
      stopping.unsubscribe()
      await manager.close()
    }
  })
}

async function readOptions(
  { workingDirectory, environment }: CommandContext,
  { config, from, server }: McpVerbOptions,
): Promise<McpOptions> {
  if (from !== undefined && !isHost(from)) {
    throw new CommandError(
      'usage',
      `--from ${JSON.stringify(from)} is not known. Use one of ${mcpHosts.join(', ')}.`,
    )
  }
  if (from === undefined && ['.ts', '.js', '.mjs'].includes(extname(config))) {
    const options = await readMcpOptions(resolve(workingDirectory, config))
    if (server === undefined) return options
    const one = getOwn(options.servers, server)
    if (one) return { ...options, servers: { [server]: one } }
    throw new ConfigurationError(
      `${config} has no MCP server ${JSON.stringify(server)}. It has ${Object.keys(options.servers).join(', ') || 'no server'}.`,
    )
  }
  const path = resolve(workingDirectory, config)
  const { servers } = await loadMcpConfig({
    ...(from === undefined && isHost(config) ? { from: config } : { from: from ?? guessHost(path), path }),
    env: environment,
    folder: workingDirectory,
    ...(server !== undefined && { servers: [server] }),
  })
  return { servers, environment }
}

function isHost(name: string): name is McpHost {
  return mcpHosts.some((host) => host === name)
}

/** The program that a file belongs to, by where programs keep their files. */
function guessHost(path: string): McpHost {
  const [name, folder] = [basename(path), basename(dirname(path))]
  if (name === 'claude_desktop_config.json') return 'claude-desktop'
  if (name === '.mcp.json' || name === '.claude.json') return 'claude-code'
  if (name === 'mcp_config.json') return 'windsurf'
  if (name === 'config.toml' || extname(name) === '.toml') return 'codex'
  if (folder === '.cursor') return 'cursor'
  if (folder === '.vscode') return 'vscode'
  if (folder === '.gemini') return 'gemini'
  throw new CommandError(
    'usage',
    `The name of ${path} does not tell which program it belongs to. Name the program: --from ${mcpHosts.join(' | ')}.`,
  )
}

/** `mcp call`: calls one tool and prints its answer; progress goes to stderr. */
function callServer(
  context: CommandContext,
  options: McpVerbOptions & { readonly server: string; readonly tool: string; readonly input: string },
): Promise<ExitCode> {
  const { json, say } = context
  const { server, tool } = options
  const input = parseInput(options.input)
  return withServers(context, options, async (manager, signal) => {
    const [status] = manager.servers
    if (status !== undefined && status.state !== 'ready') {
      throw new CommandError(
        'refused',
        `The MCP server ${server} cannot be used: ${status.faults.join('; ')}`,
      )
    }
    const onProgress = (data: unknown): void =>
      say(json ? JSON.stringify({ progress: data }) : JSON.stringify(data))
    try {
      const content = await manager.call(server, tool, input, { signal, onProgress })
      await printEither(context, { content }, content.map(formatPart).join(''))
      return exitCodes.ok
    } catch (error) {
      if (!(error instanceof ToolError)) throw error
      throw new CommandError('refused', error.message, { cause: error })
    }
  })
}

function parseInput(text: string): JsonObject {
  let input: unknown
  try {
    input = readJson(text)
  } catch (cause) {
    if (cause instanceof RangeError) throw new CommandError('usage', cause.message, { cause })
    throw new CommandError(
      'usage',
      `The input is not JSON: ${formatErrorSentence(cause)} Give an object, such as '{"path":"."}'.`,
      { cause },
    )
  }
  if (isJsonObject(input)) return input
  throw new CommandError('usage', `The input is not an object. Give one, such as '{"path":"."}'.`)
}

function formatPart(part: ResultPart): string {
  if (part.type === 'text') return part.text.endsWith('\n') ? part.text : `${part.text}\n`
  const size = 'data' in part ? `, ${part.data.length} characters of Base64` : ''
  return `(${part.mediaType}${size})\n`
}

function toStatusRow(status: McpServerStatus, manager: McpManager): object {
  const tools = listTools(status, manager).map(({ name, origin, effect, description }) => ({
    name,
    tool: origin?.name,
    effect,
    description,
  }))
  return { ...status, tools }
}

function formatServer({ paint }: CommandContext, status: McpServerStatus, manager: McpManager): string {
  const { name, state, server, transport, protocolVersion } = status
  const about = [server && `${server.name} ${server.version}`, transport, protocolVersion]
    .filter(Boolean)
    .join(', ')
  const head = `${paint('bold', name)}  ${paint(state === 'ready' ? 'green' : 'red', state)}${about === '' ? '' : `  ${about}`}`
  const tools = listTools(status, manager).map(
    (tool) => `  ${tool.name}  ${tool.effect}  ${fitText(tool.description.split('\n')[0] ?? '', 100)}`,
  )
  const faults = status.faults.map((fault) => `  ${paint('red', fault.replaceAll('\n', '\n    '))}`)
  return `${[head, ...faults, ...tools].join('\n')}\n`
}

function listTools({ name }: McpServerStatus, manager: McpManager): McpManager['tools'] {
  return manager.tools.filter(({ origin }) => origin?.server === name)
}

/** More tools than this cost many tokens at each turn, and models choose worse among them. */
const manyTools = 100

/**
 * `mcp list`: each server and its tools; `mcp doctor`: the faults of each server, and of all together. Returns exit code 1 if a
 * server cannot be used.
 */
function reportServers(
  context: CommandContext,
  action: 'list' | 'doctor',
  options: McpVerbOptions,
): Promise<ExitCode> {
  const { json, say } = context
  return withServers(context, options, async (manager) => {
    for (const status of manager.servers) {
      const text = action === 'list' ? formatServer(context, status, manager) : formatVerdict(context, status)
      await printEither(context, toStatusRow(status, manager), text)
    }
    const broken = manager.servers.filter(({ state }) => state !== 'ready').length
    if (action === 'doctor' && !json) {
      for (const advice of listAdvice(manager)) say(advice)
      say(
        `${formatCount(manager.servers.length, 'server')}, ${broken} broken; ${formatCount(manager.tools.length, 'tool')}`,
      )
    }
    return broken === 0 ? exitCodes.ok : exitCodes.failed
  })
}

function formatVerdict(
  { paint }: CommandContext,
  { name, state, tools, protocolVersion, faults }: McpServerStatus,
): string {
  const isReady = state === 'ready'
  const mark = paint(isReady ? 'green' : 'red', isReady ? 'ok    ' : 'BROKEN')
  const about = isReady ? `  ${formatCount(tools, 'tool')}, revision ${protocolVersion ?? 'unknown'}` : ''
  const lines = faults.map((fault) => `          ${fault.replaceAll('\n', '\n          ')}`)
  return `${[`${mark}  ${name}${about}`, ...lines].join('\n')}\n`
}

function listAdvice({ tools, servers }: McpManager): readonly string[] {
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

export function declareMcp(verb: Command, context: CommandContext, done: Done): void {
  verb
    .description(
      'list the tools of MCP servers, call one of them, or find out what is wrong; this starts the programs of the servers',
    )
    .addArgument(new Argument('<action>', 'what to do').choices(['list', 'call', 'doctor']))
    .argument(
      '<config>',
      'file of servers (of Claude Desktop, Cursor …, or a tallystick.config.ts with mcp), or the program whose file to read',
    )
    .argument('[server]', 'only this server; call needs it')
    .argument('[tool]', 'call: the tool, by its name at the server')
    .argument('[input]', 'call: the input, as JSON (default: {})')
    .option(
      '--from <program>',
      'program that the file belongs to, if its name does not tell: claude-desktop, claude-code, cursor, vscode, codex, gemini, windsurf',
    )
    .option('--json', 'print JSON, a line for each server; errors too, on stderr')
    .action(async (action, config, server, tool, input = '{}', { from }) => {
      const options: McpVerbOptions = { config, ...omitUndefined({ from, server }) }
      if (action !== 'call' && tool !== undefined) {
        throw new CommandError('usage', `mcp ${action} takes a configuration and at most one server.`)
      }
      if (action !== 'call') return done(await reportServers(context, action, options))
      if (server === undefined || tool === undefined) {
        throw new CommandError(
          'usage',
          'mcp call takes a server and one of its tools: mcp call CONFIG SERVER TOOL INPUT.',
        )
      }
      done(await callServer(context, { ...options, server, tool, input }))
    })
}
