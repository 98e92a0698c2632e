import { describe, expect, it } from 'vitest'
import { failureClasses } from '@tallystick/core/internal'
import {
  defaultLimits,
  defaultRetryPolicy,
  finishReasons,
  limitNames,
  outcomes,
  stopReasons,
} from '@tallystick/core/vocabulary'
import { usageFields } from '../src/events/usage.ts'
import {
  callEventTypes,
  callPlans,
  causes,
  deliveries,
  forkWrites,
  guardedThings,
  guardrailActions,
  resumeReasons,
} from '../src/events/event-parts.ts'
import { onLimits } from '../src/events/limits.ts'
import { imageDetails } from '../src/events/content.ts'
import { recoveries, toolEffects } from '../src/events/model-request.ts'

const words = (text: string): readonly string[] => text.trim().split(/\s+/)

describe('a word that a ledger may hold', () => {
  it.each([
    [
      'failure classes',
      failureClasses,
      `rate_limited overloaded timeout network truncated invalid_request authentication permission not_found
       context_overflow content_filtered refused protocol server empty_reply interrupted`,
    ],
    [
      'finish reasons',
      finishReasons,
      `answered turn_limit tool_call_limit token_limit cost_limit time_limit repeat_limit cancelled refused
       output_truncated context_overflow guardrail handed_back model_failed empty_reply output_invalid stopped`,
    ],
    [
      'stop reasons',
      stopReasons,
      `end tool_use max_tokens context_exceeded refused content_filtered paused compacted cancelled failed other`,
    ],
    [
      'outcomes',
      outcomes,
      `success invalid_input unknown_tool denied failed timed_out cancelled interrupted repeated limit_reached
       skipped`,
    ],
    [
      'limits',
      limitNames,
      `maxTurns maxToolCalls maxToolCallsPerTurn maxTotalTokens maxTotalInputTokens maxTotalOutputTokens
       maxCostUsd maxDurationMs maxRepeats`,
    ],
    ['what follows at a limit', onLimits, 'finalize stop ask'],
    [
      'fields of a usage',
      usageFields,
      `inputTokens outputTokens cacheReadTokens cacheWriteTokens cacheWriteLongTokens reasoningTokens webSearches`,
    ],
    [
      'causes',
      causes,
      `start resume steer queue approve deny settle withdraw cancel raise_limit set_schedule feedback model_started
       model_text model_reasoning model_tool_input model_tool_request model_usage model_finished model_failed calls_checked tool_progressed
       tool_deferred tool_ended call_reconciled guardrails_checked output_checked summarized controller`,
    ],
    ['details of an image', imageDetails, 'auto low high original'],
    ['effects', toolEffects, 'read write'],
    ['recoveries', recoveries, 'rerun reconcile ask report'],
    ['deliveries', deliveries, 'start steer queue'],
    ['reasons of a resume', resumeReasons, 'command crash takeover'],
    ['plans', callPlans, 'run ask settle'],
    ['what a guardrail checks', guardedThings, 'input output tool_input tool_output'],
    ['what a guardrail does', guardrailActions, 'block replace record'],
    ['writes of a fork', forkWrites, 'ask stub run'],
    [
      'events of a call',
      callEventTypes,
      `tool_input_delta tool_request_ready approval_requested approval_added approval_decided approval_applied
       tool_started tool_progress tool_deferred tool_attempt_failed tool_result background_ended`,
    ],
  ])('stays one: %s', (_name, list, text) => {
    // A ledger of an earlier release is read by the lists of this one.
    expect(list).toEqual(words(text))
  })
})

describe('what applies where nothing is said', () => {
  it('is twenty turns, and four attempts of a model call within ten minutes', () => {
    expect(defaultLimits).toEqual({
      ...{ maxTurns: 20, maxRepeats: 6, maxConcurrency: 8, graceMs: 2_000, onLimit: 'finalize' },
    })
    expect(defaultRetryPolicy).toEqual({
      ...{ maxAttempts: 4, baseMs: 500, capMs: 30_000, maxRetryAfterMs: 120_000, maxTotalMs: 600_000 },
    })
  })
})
