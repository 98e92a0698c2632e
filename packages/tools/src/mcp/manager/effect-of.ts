import type { Recovery, ToolEffect } from '@tallystick/core/vocabulary'
import type { Annotations } from '../listing/listed-tool.ts'

/** How calls of a tool are treated, by what its server says about it, where that is believed. */
export function effectOf(
  { readOnlyHint, idempotentHint }: Annotations,
  isTrusted: boolean,
): { readonly effect: ToolEffect; readonly recovery: Recovery } {
  if (!isTrusted) return { effect: 'write', recovery: 'report' }
  if (readOnlyHint === true) return { effect: 'read', recovery: 'rerun' }
  return { effect: 'write', recovery: idempotentHint === true ? 'rerun' : 'report' }
}
