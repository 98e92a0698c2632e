// One line of meaning for each way to end or to wait. Each record is exhaustive: a new word in the vocabulary does not
// compile until it has its line here.
import type { CallStatus, Refusal } from '@tallystick/core/machine'
import type {
  FailureClass,
  FinishReason,
  GuardedThing,
  LimitName,
  OnLimit,
  Outcome,
  Recovery,
  ResumeReason,
  StopReason,
} from '@tallystick/core/vocabulary'

/** A line for each word of a vocabulary. */
export type Meanings<Word extends string> = { readonly [W in Word]: string }

/** Why the run ended. */
export const ofFinishReasons: Meanings<FinishReason> = {
  answered: 'The model answered and asked for no tool, and no queued input was left to answer.',
  turn_limit: '`maxTurns` was met.',
  tool_call_limit: '`maxToolCalls` was met.',
  token_limit: 'Too few tokens were left for another model call.',
  cost_limit: 'Too little money was left for another model call.',
  time_limit:
    '`maxDurationMs` of work were over, not counting the time in which the run waited for a person; or its `deadline` came.',
  repeat_limit:
    'The run made no progress: the same reads gave the same answers again and again while nothing else happened, or a tool failed with the same error again and again.',
  cancelled: 'A person or a program cancelled it.',
  refused: 'The model refused, or the provider withheld the reply.',
  output_truncated: 'The reply was cut at its greatest length. Calls in it are not run.',
  context_overflow: 'The history is longer than the model can read. It is intact in the ledger.',
  guardrail: 'A guardrail blocked an input or the answer; `detail` says which, and what it found.',
  handed_back:
    'The model handed the conversation back to the program that started the run; `detail` says to whom.',
  output_invalid:
    'The answer did not fit the schema of the agent, also after the model was asked to repair it.',
  model_failed: 'The model, and every fallback, failed for good; `detail` says how.',
  empty_reply: 'The model, and every fallback, ended its replies without a word and without a call.',
  stopped: '`stopWhen` of the agent returned true before another model call.',
}

/** Where a limit is met, and what it counts. */
export const ofLimits: Meanings<LimitName> = {
  maxTurns: 'model calls, retries not counted',
  maxToolCalls: 'tool calls that were started, over the whole run',
  maxToolCallsPerTurn: 'tool calls of one reply',
  maxTotalTokens: 'input and output tokens, those of failed attempts included',
  maxTotalInputTokens: 'input tokens',
  maxTotalOutputTokens: 'output tokens',
  maxCostUsd: 'US dollars, by the price on record',
  maxDurationMs: 'milliseconds of work',
  maxRepeats: 'equal answers of one read while nothing changes, equal errors of one tool',
}

/** What a guardrail looks at. */
export const ofGuardedThings: Meanings<GuardedThing> = {
  input:
    'each message of the user, before the model sees it or, with `beside`, in parallel with the model call',
  output: 'the answer, before the run ends with it',
  tool_input: 'the input of a tool call, before a person is asked or anything runs',
  tool_output: 'the result of a tool call, before the model reads it',
}

/** What a met limit leads to. */
export const ofPolicies: Meanings<OnLimit> = {
  finalize: 'Open calls get `limit_reached`, and one last model call without tools writes the answer.',
  stop: 'The run ends at once, with the last text of the model.',
  ask: 'The run is suspended until a command raises the limit or cancels the run.',
}

/** Why the model stopped. */
export const ofStopReasons: Meanings<StopReason> = {
  end: 'it was done',
  tool_use: 'it waits for tools',
  max_tokens: 'the reply reached its greatest length',
  context_exceeded: 'the context was full',
  refused: 'the model refused',
  content_filtered: 'the provider withheld the rest',
  paused: 'the provider paused a long reply, to be continued',
  compacted: 'the provider compacted the context, to be continued',
  cancelled: 'the runtime cancelled the call, and kept what had arrived',
  failed: 'the call failed for good, and what had arrived was kept',
  other: 'the wire gave another reason',
}

/** How a tool call ended. */
export const ofOutcomes: Meanings<Outcome> = {
  success: 'The tool answered.',
  invalid_input: 'The input does not fit the schema. Nothing ran.',
  unknown_tool: 'No tool has that name. Nothing ran.',
  denied: 'A person, a policy or a guardrail said no, or the time to decide was over. Nothing ran.',
  failed: 'The tool threw, or broke its contract; or its child run ended without an answer.',
  timed_out: 'The time of the tool was over. It may have had an effect.',
  cancelled: 'The run was cancelled before the call was complete.',
  interrupted: 'In doubt: it was started, and the ledger has no record of its ending.',
  repeated:
    'The same read had given the same answer `maxRepeats` times while nothing changed, and got the recorded one. Nothing ran. A write never ends so.',
  limit_reached: 'A limit of the run was met. Nothing ran.',
  skipped:
    'The reply that asked for it was cut or failed, or had handed over already; or another run began from a history in which it was open. Nothing ran.',
}

/** The status of a call while the run works or has stopped. */
export const ofCallStatuses: Meanings<CallStatus> = {
  requested: 'The model asked for it; it is being checked. The run is at work.',
  to_settle: 'It gets a result without being started. The run is at work.',
  to_ask: 'A person is about to be asked. The run is at work.',
  awaiting_approval:
    '**A person has to decide.** The run is suspended once nothing else of the turn is running.',
  ready: 'It may start; a write waits for the writes before it, and those may wait for a person.',
  to_retry: 'An attempt failed, and the next one starts in a moment. The run is at work.',
  started: 'It runs. The run is at work.',
  in_doubt: 'The process that ran it is gone. What follows is up to `recovery`, below.',
  deferred:
    '**A program outside has to settle it** (`runtime.settle`), or its child run waits for something. The run is suspended once nothing else of the turn is running; at the deadline, if there is one, it counts as timed out.',
  settled: 'It has its result, and waits for the others of its turn.',
}

/** What a resume does with a call in doubt. */
export const ofRecoveries: Meanings<Recovery> = {
  rerun: 'It is started again, under the same idempotency key.',
  reconcile:
    '`reconcile` of the tool looks it up: it happened (its result), it did not (started), unknown (`interrupted`).',
  ask: '**A person has to decide**: approved, it is started again; denied, it is `interrupted`.',
  report: 'It is `interrupted`, and the model reads that.',
}

/** What was in flight when a process took a run over. */
export const ofResumeReasons: Meanings<ResumeReason> = {
  command: 'Nothing was in flight: the run was waiting for a command.',
  crash: 'Something was in flight, and its process is gone.',
  takeover: 'Kept for a process that takes over what another still drives; nothing writes it yet.',
}

/** What a failed model call was. */
export const ofFailures: Meanings<FailureClass> = {
  rate_limited: 'too many calls',
  overloaded: 'the service is busy',
  timeout: 'no answer in time',
  network: 'no connection',
  truncated: 'the stream ended without its end',
  invalid_request: 'the request is wrong',
  authentication: 'no valid key',
  permission: 'the account may not do this',
  not_found: 'no such model',
  context_overflow: 'the history does not fit',
  content_filtered: 'the provider withholds the reply',
  refused: 'the model refused, and another was asked',
  empty_reply: 'the reply was whole, and held no word and no call',
  protocol: 'the answer makes no sense, or the adapter broke its contract',
  server: 'a fault of the service',
  interrupted: 'the process that made the call is gone',
}

/** Why a command was not obeyed. */
export const ofRefusals: Meanings<Refusal['code']> = {
  run_finished: 'The run is done.',
  unknown_call: 'The run has no open call of that id.',
  not_awaiting_approval: 'The call needs no decision, or has one already: the message says whose.',
  approval_expired: 'The time to decide is over; the call counts as denied.',
  not_deferred: 'The call does not wait to be settled, or is settled already.',
  not_raised: 'The limit is not set, or is already as high.',
  already_cancelled: 'The run is being cancelled.',
  cancelled: 'The run is being cancelled, and takes no more input.',
  not_supported: 'The run does not exist yet.',
  malformed: 'The command is incomplete or has a wrong field; the message names it.',
  invalid_input: 'The input that the approver gave does not fit the tool; the call still waits.',
  run_exists: 'A run of that id exists.',
  drained:
    'The process continues no run. The process that drives the run next decides about commands that are in the inbox already.',
}
