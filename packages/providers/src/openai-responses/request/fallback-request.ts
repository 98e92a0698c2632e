import type { ProviderError } from '@tallystick/core'
import { codeOf } from '../../openai/client/failure.ts'
import { refusedField } from '../../openai/request/sampling.ts'
import type { ProviderState } from '@tallystick/core/vocabulary'
import type { WireRequest } from '../client/wire.ts'
import type { FallbackChanges } from './request-settings.ts'

/** How the next request differs from one that was refused. */
export interface Fallback {
  readonly now: FallbackChanges
  /** The changes that hold for every later call of the model. */
  readonly forGood: FallbackChanges
  /** Left out where rendering the next request warns. */
  readonly warning?: { readonly what: 'state' | 'reasoning'; readonly message: string }
}

/** A request that was refused, and the changes that it was made with. */
interface Refused {
  readonly failure: ProviderError
  readonly body: object
  readonly changes: FallbackChanges
  /** Whether the run relies on a past that the provider keeps: if that is lost, it is nowhere else. */
  readonly given?: ProviderState | undefined
}

/**
 * Returns the changes for the next request, where one was refused for a single thing that it can go without. Returns
 * `undefined` where the request went without that thing already, so that something else in it is refused.
 */
export function fallbackFor(refused: Refused): Fallback | undefined {
  const { failure } = refused
  if (failure.class !== 'invalid_request' && failure.class !== 'not_found') return undefined
  return lostState(refused) ?? noEncryption(refused) ?? noSetting(refused)
}

const lostCodes = new Set(['previous_response_not_found', 'conversation_not_found'])

function lostState({ failure, body, changes, given = {} }: Refused): Fallback | undefined {
  const { previous_response_id: after, conversation } = body as Partial<WireRequest>
  if (changes.stateLost || (after ?? conversation) === undefined) return undefined
  if ((after ?? conversation) === (given.previousResponseId ?? given.conversationId)) return undefined
  const isLost =
    lostCodes.has(codeOf(failure) ?? '') ||
    (/\b(previous response|conversation)\b/i.test(failure.message) &&
      /\b(not found|does not exist|expired)/i.test(failure.message))
  if (!isLost) return undefined
  const message = 'The service no longer has what it kept of this history, so the request carried all of it.'
  return { now: { stateLost: true }, forGood: {}, warning: { what: 'state', message } }
}

function noEncryption({ failure, body, changes }: Refused): Fallback | undefined {
  if (changes.noEncryption || !('include' in body)) return undefined
  if (!/encrypted.?content is not supported|reasoning\.encrypted_content/i.test(failure.message))
    return undefined
  const message = 'The model knows no encrypted reasoning, so it is no longer asked for.'
  const without = { noEncryption: true }
  return { now: without, forGood: without, warning: { what: 'reasoning', message } }
}

function noSetting({ failure, body, changes }: Refused): Fallback | undefined {
  const before = changes.refused ?? []
  const field = refusedField(failure, body)
  if (field === undefined || before.includes(field)) return undefined
  const without = { refused: [...before, field] }
  return { now: without, forGood: without }
}
