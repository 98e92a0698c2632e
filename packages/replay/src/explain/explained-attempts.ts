import { type RuntimeEvent } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/kit'
import type { ExplainedAttempt } from './explanation.ts'

/** The attempts of a turn's model call, as the turn's events tell of them. */
export function explainedAttempts(ofTurn: readonly RuntimeEvent[]): readonly ExplainedAttempt[] {
  const attempts: ExplainedAttempt[] = []
  for (const event of ofTurn) {
    if (event.type === 'model_call_started') {
      const { attempt, seq, model } = event
      attempts.push({ attempt, seq, model, outcome: 'under_way' })
      continue
    }
    const last = attempts.at(-1)
    if (last) attempts[attempts.length - 1] = { ...last, ...attemptFacts(event) }
  }
  return attempts
}

function attemptFacts(event: RuntimeEvent): Partial<ExplainedAttempt> {
  if (event.type === 'model_stream_failed') return { outcome: 'failed', failure: event.failure.class }
  if (event.type === 'assistant_message_finished') return { outcome: event.partial ? 'cut_off' : 'answered' }
  if (event.type !== 'usage_updated') return {}
  const { usage, costUsd } = event
  return { usage, ...omitUndefined({ costUsd }) }
}
