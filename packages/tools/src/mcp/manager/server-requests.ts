import type { Client, Prompt, RequestOptions } from '@modelcontextprotocol/client'
import type { ResultPart } from '@tallystick/core/vocabulary'
import { ToolError } from '../../execution/tool-error.ts'
import { callDeadline } from '../connection/call-deadline.ts'
import { callFailureOf, failureError, unreachable } from '../connection/call-failure.ts'
import type { McpConnection } from '../connection/connection.ts'
import type { SharedParts } from '../connection/shared-parts.ts'
import { noTimeoutMs } from '../connection/waiting.ts'
import { contentParts, resourcePart, withoutSecrets } from '../listing/result-content.ts'
import { cleanText } from '../text/clean-text.ts'
import type { McpPrompt, McpPromptMessages, McpResource } from './manager.ts'
import { readingOf } from './mcp-tool.ts'

const maxTextCharacters = 8_000

/** Sends a request to a server, within the time of a call. Rejects with a `ToolError`. */
async function ask<Answer>(
  connection: McpConnection,
  shared: SharedParts,
  request: (client: Client, options: RequestOptions) => Promise<Answer>,
): Promise<Answer> {
  const { options, name } = connection.server
  const { timeoutMs = 60_000, maxTotalMs = 600_000 } = options
  const deadline = callDeadline(shared.timers, timeoutMs, maxTotalMs)
  const { signal } = deadline
  connection.deadlines.add(deadline)
  let isConnected = false
  try {
    const { client } = await connection.ready(signal).catch(() => {
      signal.throwIfAborted()
      throw unreachable(name, connection.faults())
    })
    isConnected = true
    deadline.progress()
    return await request(client, { signal, timeout: noTimeoutMs })
  } catch (error) {
    if (error instanceof ToolError) throw error
    if (signal.aborted) {
      const why = isConnected ? '' : ' There was no connection to it.'
      throw new ToolError(`The MCP server ${name} did not answer in time.${why}`, { outcome: 'timed_out' })
    }
    throw failureError(callFailureOf(error, shared), connection.server, connection.faults())
  } finally {
    deadline.stop()
    connection.deadlines.delete(deadline)
  }
}

/** The resources of a server and its templates of resources; nothing of a server that has neither. */
export function resourcesOf(connection: McpConnection, shared: SharedParts): Promise<readonly McpResource[]> {
  return ask(connection, shared, async (client, request) => {
    if (client.getServerCapabilities()?.resources === undefined) return []
    const { resources } = await client.listResources(undefined, request)
    // Many servers have resources and no templates, and some answer with an error to that.
    const templates = await client.listResourceTemplates(undefined, request).catch(() => undefined)
    return [
      ...resources.map((each) => ({ ...each, isTemplate: false })),
      ...(templates?.resourceTemplates ?? []).map((each) => ({
        ...each,
        uri: each.uriTemplate,
        isTemplate: true,
      })),
    ].map(({ uri, name, description, mimeType, isTemplate }) => ({
      uri: cleanedText(connection, uri),
      isTemplate,
      name: cleanedText(connection, name),
      ...described(connection, description),
      ...(mimeType !== undefined && { mimeType: cleanedText(connection, mimeType) }),
    }))
  })
}

/** What a resource holds. */
export function resourceAt(
  connection: McpConnection,
  shared: SharedParts,
  uri: string,
): Promise<readonly ResultPart[]> {
  return ask(connection, shared, async (client, request) => {
    const { contents } = await client.readResource({ uri }, request)
    const [first] = contents
    if (contents.length === 1 && first && !('text' in first)) return [resourcePart(first)]
    const blocks = contents.map((resource) => ({ type: 'resource' as const, resource }))
    return contentParts(blocks, readingOf(connection))
  })
}

/** The prompts of a server; nothing of a server that has no prompts. */
export function promptsOf(connection: McpConnection, shared: SharedParts): Promise<readonly McpPrompt[]> {
  return ask(connection, shared, async (client, request) => {
    if (client.getServerCapabilities()?.prompts === undefined) return []
    const { prompts } = await client.listPrompts(undefined, request)
    return prompts.map((prompt: Prompt) => ({
      name: cleanedText(connection, prompt.name),
      ...described(connection, prompt.description),
      arguments: (prompt.arguments ?? []).map((argument) => ({
        name: cleanedText(connection, argument.name),
        ...described(connection, argument.description),
        required: argument.required === true,
      })),
    }))
  })
}

/** A prompt with its arguments filled in. */
export function promptOf(
  connection: McpConnection,
  shared: SharedParts,
  name: string,
  input: Readonly<Record<string, string>>,
): Promise<McpPromptMessages> {
  return ask(connection, shared, async (client, request) => {
    const { description, messages } = await client.getPrompt({ name, arguments: { ...input } }, request)
    const reading = readingOf(connection)
    return {
      ...described(connection, description),
      messages: messages.map(({ role, content }) => ({ role, content: contentParts([content], reading) })),
    }
  })
}

function cleanedText({ server }: McpConnection, text: string): string {
  return cleanText(withoutSecrets(text, server.secrets), maxTextCharacters)
}

function described(
  connection: McpConnection,
  description: string | undefined,
): { readonly description?: string } {
  return description === undefined ? {} : { description: cleanedText(connection, description) }
}
