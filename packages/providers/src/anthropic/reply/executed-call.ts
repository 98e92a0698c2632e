import { isJsonObject } from '@tallystick/core/kit'
import type { JsonObject, ProviderExecuted } from '@tallystick/core/vocabulary'
import { objectAt, textAt } from '../../shared/json/json-reading.ts'
import type { WireBlock } from '../client/wire.ts'
import { serverHalfOf } from '../request/rendered-message.ts'

/**
 * Returns what a closed block shows of a tool that the vendor ran. `useOf` finds the block of this reply that requested
 * it, by its id: a result names only that, and after a pause the request is in another reply.
 */
export function executedCall(
  block: WireBlock,
  useOf: (id: string) => JsonObject | undefined,
): ProviderExecuted | undefined {
  const half = serverHalfOf(block)
  if (half === undefined) return undefined
  if (half.kind === 'use')
    return { id: half.id, name: toolName(block), input: objectAt(block, 'input') ?? {} }
  const use = useOf(half.id)
  const name = use === undefined ? block.type.replace(/_tool_result$/, '') : toolName(use)
  return { id: half.id, name, outcome: failed(block) ? 'failed' : 'success' }
}

/** Tools of an MCP server go by both names: two servers may have one of the same name. */
function toolName(use: JsonObject): string {
  const server = textAt(use, 'server_name')
  const name = textAt(use, 'name') ?? ''
  return server === undefined ? name : `${server}/${name}`
}

/** Errors of the vendor's tools are results like any other, told apart by their type only. */
function failed({ is_error: isError, content }: WireBlock): boolean {
  return isError === true || (isJsonObject(content) && (textAt(content, 'type') ?? '').endsWith('_error'))
}
