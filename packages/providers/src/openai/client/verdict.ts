import { getOwn } from '@tallystick/core/kit'
import { final, retryable, type Verdict, verdictOfStatus } from '../../shared/failure/verdict.ts'

/** What a service says when it fails, as far as it says anything. */
export interface Answer {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly code: string | undefined
  readonly words: string
}

/** By the service's own word, its `code` or its `type`: before the stream, in it, and in a failed response. */
const byWord: { readonly [word: string]: Verdict } = {
  invalid_api_key: final('authentication'),
  authentication_error: final('authentication'),
  permission_error: final('permission'),
  permission_denied: final('permission'),
  unsupported_country_region_territory: final('permission'),
  account_deactivated: final('permission'),
  billing_not_active: final('permission'),
  billing_hard_limit_reached: final('rate_limited'),
  insufficient_quota: final('rate_limited'),
  rate_limit_exceeded: retryable('rate_limited'),
  rate_limit_error: retryable('rate_limited'),
  model_not_found: final('not_found'),
  not_found_error: final('not_found'),
  previous_response_not_found: final('not_found'),
  conversation_not_found: final('not_found'),
  context_length_exceeded: final('context_overflow'),
  exceed_context_size_error: final('context_overflow'),
  request_too_large: final('context_overflow'),
  content_filter: final('content_filtered'),
  content_policy_violation: final('content_filtered'),
  invalid_prompt: final('content_filtered'),
  bio_policy: final('content_filtered'),
  misalignment_policy_violation: final('content_filtered'),
  server_error: retryable('server'),
  api_error: retryable('server'),
  slow_down: retryable('overloaded'),
  overloaded_error: retryable('overloaded'),
  engine_overloaded: retryable('overloaded'),
  server_is_overloaded: retryable('overloaded'),
  insufficient_system_resource: retryable('overloaded'),
  unavailable_error: retryable('overloaded'),
  vector_store_timeout: retryable('timeout'),
  timeout_error: retryable('timeout'),
  // The model wrote a call that its server could not read; the next one may be sound.
  tool_use_failed: retryable('server'),
}

/** Statuses that some servers have of their own. */
const ownStatuses = { 425: retryable('server'), 498: retryable('overloaded') }

// `tokens per min`: the request alone is larger than what a minute allows.
const overflowWords =
  /context (window|length|size)|maximum context|prompt is too long|too many tokens in|input (is )?too long|exceeds? the (available )?context|^request too large for/i
const filterWords = /content (management |filtering )?policy|content filter|usage policy|safety system/i

/** Judges an answer: by its own word first, then by its status; without either, the fault is on the other side. */
export function verdictOf(answer: Answer): Verdict {
  const { type, code, words } = answer
  const verdict = wordOf(code) ?? wordOf(type) ?? verdictWithoutWord(answer)
  if (verdict.class === 'rate_limited' && /^request too large for/i.test(words)) {
    return final('context_overflow')
  }
  if (verdict.class !== 'invalid_request') return verdict
  if (overflowWords.test(words)) return final('context_overflow')
  if (filterWords.test(words)) return final('content_filtered')
  return verdict
}

function wordOf(word: string | undefined): Verdict | undefined {
  return word === undefined ? undefined : getOwn(byWord, word)
}

function verdictWithoutWord({ status, type }: Answer): Verdict {
  const isRefused = type !== undefined && /^(invalid_request_error|BadRequestError)$/.test(type)
  return status === undefined && isRefused ? final('invalid_request') : verdictOfStatus(status, ownStatuses)
}
