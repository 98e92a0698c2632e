import type { FinishReason } from '@tallystick/core/vocabulary'

/** What the end of a run is to a client of OpenAI: an answer, one that is cut off or withheld, or none. */
export type FacadeEnding = 'completed' | 'cut' | 'withheld' | 'cancelled' | 'failed'

/** The endings of runs. Where a limit is met, what the agent has written until then is the answer. */
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
  output_invalid: 'failed',
  context_overflow: 'failed',
}

/** Says why a run has no answer, without what its provider said of it. */
export function failureText(runId: string, reason: FinishReason): string {
  return `Run ${runId} ended as ${reason}, without an answer. GET /runs/${runId} tells more of it.`
}
