import type { FinishReason } from '@tallystick/core/vocabulary'

/** How a run ended, for a client of OpenAI: with an answer, with one that was cut off or withheld, or without one. */
export type FacadeEnding = 'completed' | 'cut' | 'withheld' | 'cancelled' | 'failed'

/** The ending for each reason why a run ended. At a limit, the text so far is the answer. */
export const facadeEndings: Readonly<Record<FinishReason, FacadeEnding>> = {
  answered: 'completed',
  handed_back: 'completed',
  stopped: 'completed',
  turn_limit: 'cut',
  tool_call_limit: 'cut',
  token_limit: 'cut',
  cost_limit: 'cut',
  time_limit: 'cut',
  repeat_limit: 'cut',
  output_truncated: 'cut',
  refused: 'withheld',
  guardrail: 'withheld',
  cancelled: 'cancelled',
  model_failed: 'failed',
  empty_reply: 'failed',
  output_invalid: 'failed',
  context_overflow: 'failed',
}

/** Returns why a run has no answer, without the provider's own message. */
export function failureText(runId: string, reason: FinishReason): string {
  return `Run ${runId} ended as ${reason}, without an answer. GET /runs/${runId} tells more of it.`
}
