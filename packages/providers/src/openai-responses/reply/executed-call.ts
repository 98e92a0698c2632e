import { isJsonObject } from '@tallystick/core/kit'
import type { JsonObject, ProviderExecuted } from '@tallystick/core/vocabulary'
import { readCallInput } from '../../shared/reply/call-input.ts'
import { objectAt, restOf, textAt } from '../../shared/json/json-reading.ts'
import { awaitsCaller } from '../request/rendered-message.ts'

/** Items of tools that the vendor runs itself, some of them only where the caller does not; the last ones are xAI's. */
const kinds = new Set([
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
  'mcp_call',
  'tool_search_call',
  'shell_call',
  'x_search_call',
  'code_execution_call',
  'view_image_call',
  'view_x_video_call',
  'collections_search_call',
  'custom_tool_call',
])
/** Fields of an item that say nothing of what was asked. */
const aside = [
  'id',
  'type',
  'status',
  'name',
  'server_label',
  'arguments',
  'action',
  'output',
  'outputs',
  'results',
  'result',
  'error',
  'approval_request_id',
  'container_id',
  'caller',
  'namespace',
]

/**
 * Returns what a closed item shows of a tool that the vendor ran; the item holds both the request and its ending.
 * `undefined` for a call that the caller has to answer.
 */
export function executedCall(item: JsonObject): ProviderExecuted | undefined {
  const type = textAt(item, 'type') ?? ''
  const status = textAt(item, 'status')
  const id = textAt(item, 'id')
  if (!kinds.has(type) || id === undefined || awaitsCaller(item)) return undefined
  const server = textAt(item, 'server_label')
  const name = textAt(item, 'name') ?? type.replace(/_call$/, '')
  const failed = (status ?? 'completed') !== 'completed' || (item['error'] ?? null) !== null
  return {
    id,
    name: server === undefined ? name : `${server}/${name}`,
    input: inputOf(item),
    outcome: failed ? 'failed' : 'success',
  }
}

/** What was asked: as text, as an action, or in fields beside the others. */
function inputOf(item: JsonObject): JsonObject {
  const text = item['arguments'] ?? item['input']
  if (typeof text === 'string') {
    const { input, malformed } = readCallInput(text)
    return malformed === undefined ? input : { text }
  }
  return isJsonObject(text) ? text : (objectAt(item, 'action') ?? restOf(item, aside))
}
