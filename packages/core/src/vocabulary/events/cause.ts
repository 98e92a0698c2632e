/**
 * What decides an event: the type of the command or signal that the machine received, or `controller`, where the loop
 * controller found in the state what is pending.
 */
export const causes = [
  'start',
  'resume',
  'steer',
  'queue',
  'approve',
  'deny',
  'settle',
  'cancel',
  'raise_limit',
  'model_started',
  'model_text',
  'model_reasoning',
  'model_tool_input',
  'model_tool_request',
  'model_usage',
  'model_finished',
  'model_failed',
  'calls_checked',
  'tool_progressed',
  'tool_deferred',
  'tool_ended',
  'call_reconciled',
  'guardrails_checked',
  'output_checked',
  'summarized',
  'controller',
] as const
export type Cause = (typeof causes)[number]
