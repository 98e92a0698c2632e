import { isJsonObject, sentenceOfError } from '@tallystick/core/kit'
import { ToolError } from '@tallystick/tools'
import type { JsonObject, ResultPart } from '@tallystick/core/vocabulary'
import type { CommandContext } from '../../command/command-context.ts'
import { CommandError, type ExitCode, exitCodes } from '../../command/exit-code.ts'
import { type McpVerbOptions, withServers } from './open-servers.ts'

/** Which tool is called, and with what. */
export interface CallServerOptions extends McpVerbOptions {
  readonly server: string
  readonly tool: string
  /** JSON of an object. */
  readonly input: string
}

/** `mcp call`: calls one tool and prints what it answers; progress goes to stderr. Exit code 1 where it fails. */
export function callServer(
  context: CommandContext,
  { server, tool, input, ...options }: CallServerOptions,
): Promise<ExitCode> {
  const { json, print, say } = context
  const given = inputOf(input)
  return withServers(context, { ...options, server }, async (manager, signal) => {
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
      const content = await manager.call(server, tool, given, { signal, onProgress })
      await print(json ? `${JSON.stringify({ content })}\n` : content.map(partText).join(''))
      return exitCodes.ok
    } catch (error) {
      if (!(error instanceof ToolError)) throw error
      throw new CommandError('refused', error.message, { cause: error })
    }
  })
}

function inputOf(text: string): JsonObject {
  let input: unknown
  try {
    input = JSON.parse(text)
  } catch (cause) {
    throw new CommandError(
      'usage',
      `The input is no JSON: ${sentenceOfError(cause)} Give an object, such as '{"path":"."}'.`,
      { cause },
    )
  }
  if (isJsonObject(input)) return input
  throw new CommandError('usage', `The input is no object. Give one, such as '{"path":"."}'.`)
}

function partText(part: ResultPart): string {
  if (part.type === 'text') return part.text.endsWith('\n') ? part.text : `${part.text}\n`
  const size = 'data' in part ? `, ${part.data.length} characters of Base64` : ''
  return `(${part.mediaType}${size})\n`
}
