import type { ProviderError } from '@tallystick/core'
import { codeOf } from '../../openai/client/failure.ts'
import { refusedSampling } from '../../openai/request/sampling.ts'
import type { Concessions } from './request-settings.ts'

/** What a request goes without, after one was refused. */
export interface Concession {
  readonly now: Concessions
  /** What of it holds for every later call of the model. */
  readonly forGood: Concessions
  /** Where rendering the request again does not tell of it. */
  readonly warning?: { readonly what: 'state' | 'reasoning'; readonly message: string }
}

/** A request that was refused, and what it went without. */
interface Refused {
  readonly failure: ProviderError
  readonly body: object
  readonly conceded: Concessions
}

/**
 * What to do without, when a request was refused for the one thing that can be done without; `undefined` where that was
 * conceded already, and something else in the request insists on it.
 */
export function concessionFor(refused: Refused): Concession | undefined {
  const { failure } = refused
  if (failure.class !== 'invalid_request' && failure.class !== 'not_found') return undefined
  return lostState(refused) ?? noEncryption(refused) ?? noSetting(refused)
}

const lostCodes = new Set(['previous_response_not_found', 'conversation_not_found'])

function lostState({ failure, body, conceded }: Refused): Concession | undefined {
  if (conceded.stateLost || !('previous_response_id' in body || 'conversation' in body)) return undefined
  const isLost =
    lostCodes.has(codeOf(failure) ?? '') ||
    (/\b(previous response|conversation)\b/i.test(failure.message) &&
      /\b(not found|does not exist|expired)/i.test(failure.message))
  if (!isLost) return undefined
  const told = 'The service no longer has what it kept of this history, so the request carried all of it.'
  return { now: { stateLost: true }, forGood: {}, warning: { what: 'state', message: told } }
}

function noEncryption({ failure, body, conceded }: Refused): Concession | undefined {
  if (conceded.noEncryption || !('include' in body)) return undefined
  if (!/encrypted.?content is not supported|reasoning\.encrypted_content/i.test(failure.message))
    return undefined
  const told = 'The model knows no encrypted reasoning, so it is no longer asked for.'
  const without = { noEncryption: true }
  return { now: without, forGood: without, warning: { what: 'reasoning', message: told } }
}

function noSetting({ failure, body, conceded }: Refused): Concession | undefined {
  const before = conceded.refused ?? []
  const field = refusedSampling(failure, body)
  if (field === undefined || before.includes(field)) return undefined
  const without = { refused: [...before, field] }
  return { now: without, forGood: without }
}
