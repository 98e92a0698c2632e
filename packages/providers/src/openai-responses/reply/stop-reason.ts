import { getOwn } from '@tallystick/core/kit'
import type { StopReason } from '@tallystick/core/vocabulary'

const incomplete: { readonly [reason: string]: StopReason } = {
  max_output_tokens: 'max_tokens',
  content_filter: 'content_filtered',
}

/** Why a response that ended before its end did so; a reason that was added later is `other`. */
export function incompleteReason(reason: string): StopReason {
  return getOwn(incomplete, reason) ?? 'other'
}
