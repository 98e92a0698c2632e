import { type Mutation, mutationsOf } from './mutation.ts'

/** Faults of what is decided and owed. */
export const decisionMutations: readonly Mutation[] = [
  ...mutationsOf('machine/next/next-action.ts', {
    'partial text is lost': [
      'const texts = attempt.drafts.map(({ part, kind, text }) => ({ part, content: { type: kind, text } }))',
      'const texts: { part: number; content: AssistantPart }[] = []',
    ],
    'calls of a reply that was cut at its token limit run': [
      "new Set(['tool_use', 'end', 'paused', 'other'])",
      "new Set(['tool_use', 'end', 'paused', 'other', 'max_tokens'])",
    ],
    'calls of a failed attempt get no result': [
      "facts: [...settleCalls(state, calls, 'skipped'), next]",
      'facts: [next]',
    ],
    'calls of the finalizing reply run': [
      "  if (finalizing) return { kind: 'collect'",
      "  if (false) return { kind: 'collect'",
    ],
    'calls of a partial reply run': [
      'if (message.partial || !runnable.has(message.stopReason)) {',
      'if (!runnable.has(message.stopReason)) {',
    ],
    'a cancel waits for the next attempt': [
      '  if (state.cancel || state.blocked || (state.metLimit && !finalizing))',
      '  if (state.blocked || (state.metLimit && !finalizing))',
    ],
    'a cancel while the model answers is not heard': [
      "  if (state.cancel || state.blocked) return keepPartial(state, 'cancelled')\n  const deadline",
      "  if (state.blocked) return keepPartial(state, 'cancelled')\n  const deadline",
    ],
    'the next attempt does not wait': [
      '  if (retryAt !== undefined && now < retryAt) return',
      '  if (retryAt !== undefined && now < 0) return',
    ],
    'what a given-up attempt left open stays open': [
      "facts: [...settleCalls(state, attempt.calls, 'skipped'), ...end.facts]",
      'facts: end.facts',
    ],
  }),
  ...mutationsOf('machine/next/next-model-call.ts', {
    'the finalizing call may ask for tools': ['toolChoice: finalizing ? noTools : toolChoice', 'toolChoice'],
  }),
  ...mutationsOf('machine/next/next-calls.ts', {
    'writes run at the same time': [
      '(call === nextWrite || reads.includes(call))',
      "(call.effect !== 'read' || reads.includes(call))",
    ],
    'writes run out of order': [
      "writes.find((call) => call.status !== 'settled')",
      "writes.findLast((call) => call.status !== 'settled')",
    ],
    'any number of reads run at the same time': [
      'startable.has(call)).slice(0, room)',
      'startable.has(call))',
    ],
    'a call in doubt is started again though its tool says report': [
      "call.status === 'in_doubt' && call.recovery === 'rerun'",
      "call.status === 'in_doubt'",
    ],
    'a call in doubt of an unknown tool is started again': [
      "(call.recovery ?? 'report') === 'report'",
      "call.recovery === 'report'",
    ],
    'a cancel gives no grace time': ['const late = now >= cancelledAt + graceMs(state)', 'const late = true'],
    'a cancel leaves running tools alone for ever': [
      'const late = now >= cancelledAt + graceMs(state)',
      'const late = false',
    ],
    'a cancelled call in doubt counts as never run': [
      "resultFact(state, call, doubtful ? 'interrupted' : 'cancelled')",
      "resultFact(state, call, 'cancelled')",
    ],
    'results enter in the order in which they came': [
      '  const toolCallIds = state.calls.map((call) => call.toolCallId)\n',
      '  const toolCallIds = state.calls.map((call) => call.toolCallId).reverse()\n',
    ],
    'more calls start than there may be': [
      'if (call.attempts === 0 && ++fresh > allowed) return []',
      'if (++fresh > 99) return []',
    ],
    'a person is not asked about a call in doubt': [
      "filter((call) => call.recovery === 'ask')",
      'filter(() => false)',
    ],
  }),
  ...mutationsOf('machine/decide/decide-tool-signal.ts', {
    'the ending of an earlier attempt counts': [
      'isAtWork(call) && call.attempts === signal.attempt\n',
      'isAtWork(call)\n',
    ],
    'the idempotency key changes with the attempt': [
      'idempotencyKey: idempotencyKeyOf(runId, call.toolCallId)',
      'idempotencyKey: `${idempotencyKeyOf(runId, call.toolCallId)}_${call.attempts}`',
    ],
    'a late check collects the calls of another turn': [
      "state.phase !== 'collecting' || signal.turn !== state.turn",
      "state.phase !== 'collecting'",
    ],
  }),
  ...mutationsOf('machine/decide/decide-model-signal.ts', {
    'reports of another attempt count': [
      '  if (signal.turn !== state.turn || signal.attempt !== state.attempt.number) return nothing\n',
      '',
    ],
    'text that was not streamed is not made up for': ["  if (text === '') return []\n", '  return []\n'],
    'a reply that contradicts its stream is taken': [
      '  if (fault) return decideContractBreach(state, stamp, fault)\n',
      '',
    ],
    'a call is reported twice': [
      '  if (state.attempt.calls.some((known) => known.part === part)) {\n',
      '  if (false) {\n',
    ],
  }),
  ...mutationsOf('machine/decide/decide-command.ts', {
    'a call is approved that nobody was asked about': [
      "  if (call.status !== 'awaiting_approval' || call.inputDigest === undefined) {\n",
      '  if (call.inputDigest === undefined) {\n',
    ],
    'a cancel is taken twice': [
      "      if (state.cancel) return refusal('already_cancelled'",
      "      if (false) return refusal('already_cancelled'",
    ],
    'the same input is taken twice': [
      '      if (state.pendingInputs.some((input) => input.receipt === receipt)) return nothing\n',
      '',
    ],
    'an attempt that nobody listens to stays under way': [
      "  if (state.phase === 'streaming' && !state.attempt.failed) {\n",
      '  if (false) {\n',
    ],
  }),
  ...mutationsOf('machine/limits/retry.ts', {
    'a provider may ask for any patience': ['  if (retryAfterMs > retryAfterMaxMs) return undefined\n', ''],
    'attempts have no end': ['!failure.retryable || state.failures + 1 >= attemptsMax', '!failure.retryable'],
    'failures that cannot be mended are tried again': [
      '!failure.retryable || state.failures',
      'state.failures',
    ],
    'waits have no cap': ['Math.min(capMs, baseMs * 2 ** failures)', 'baseMs * 2 ** failures'],
    'runs that failed together come back together': [' * (1 - random / 2)', ''],
  }),
  ...mutationsOf('machine/limits/limit-check.ts', {
    'one turn more than there may be': [
      'if (max !== undefined && amount >= max)',
      'if (max !== undefined && amount > max)',
    ],
    'one tool call more than there may be': [
      '(state.limits.toolCallsMax ?? Infinity) - toolCalls',
      '(state.limits.toolCallsMax ?? Infinity) + 1 - toolCalls',
    ],
  }),
  ...mutationsOf('machine/next/next-turn.ts', {
    'a model is called before guardrails have looked': ['    whileGuarded(state) ??\n', ''],
    'a turn shows what no provider takes': [
      '  requireShown(change?.messages, `prepareTurn of the agent ${state.agent}`)\n',
      '',
    ],
  }),
  ...mutationsOf('machine/next/next-handoff.ts', {
    'a handoff shows what no provider takes': [
      '  requireShown(messages, `The filter of the handoff from ${state.agent} to ${to}`)\n',
      '',
    ],
  }),
  ...mutationsOf('vocabulary/values/child-run-id.ts', {
    'children that work side by side each get all that is left': [
      'Math.floor(left / shares)',
      'Math.floor(left)',
    ],
    'a child run has its own limits only': ['  return { ...own, ...inherited,', '  return { ...own,'],
  }),
  ...mutationsOf('machine/state/required-effects.ts', {
    'calls are checked before guardrails have passed the input': [
      '  if (state.blocked || state.inputCheck) return []',
      '  if (state.blocked) return []',
    ],
  }),
  ...mutationsOf('machine/decide/decide-command.ts', {
    'the work of a child run is settled by somebody else': [
      '  if (call.child !== undefined && child === undefined) {',
      '  if (false) {',
    ],
  }),
  ...mutationsOf('machine/fork-events.ts', {
    'a fork has the idempotency keys of the run that it forks': [
      '    idempotencyKey: idempotencyKeyOf(runId, toolCallId),\n',
      '',
    ],
  }),
]
