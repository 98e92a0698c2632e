import { type Mutation, mutationsOf } from './mutation.ts'

/** Faults of the fold: what a damaged ledger, or a writer at fault, could then put past it. */
export const foldMutations: readonly Mutation[] = [
  ...mutationsOf('machine/fold/evolve-calls.ts', {
    'a run continues while a call has no result': [
      '  if (open) throw illegal(state, event, `call ${open.toolCallId} has no result`)\n',
      '',
    ],
    'calls are left behind before they are collected': [
      "  if (state.phase === 'collecting' && state.calls.length > 0)\n",
      '  if (false)\n',
    ],
    'a call that never started succeeds': [
      "  success: [...begun, 'deferred'],\n",
      "  success: [...begun, 'deferred', 'ready'],\n",
    ],
    'a call ends twice': [
      '  if (!from.includes(call.status)) throw illegal(state, event, `call ${call.toolCallId} is ${call.status}`)\n',
      '',
    ],
    'results enter in any order': [
      "  if (event.toolCallIds.join() !== ids(results)) throw illegal(state, event, 'it is not in request order')\n",
      '',
    ],
    'a decision about other arguments counts': [
      'if (state.removedFrom === undefined && event.inputDigest !== call.inputDigest) {',
      'if (false) {',
    ],
    'starts are not counted': [
      '  if (event.attempt !== due) throw illegal(state, event, `attempt ${event.attempt} where ${due} is due`)\n',
      '',
    ],
    'one call is requested twice': [
      '  if (attempt.calls.some((call) => call.toolCallId === toolCallId || call.part === part)) {\n',
      '  if (false) {\n',
    ],
    'a result names another tool': [
      "    if (event.name !== call.name) throw illegal(state, event, `the call's tool is ${call.name}`)\n",
      '',
    ],
    'a call is left out when the calls are collected': [
      '  if (ids(event.calls) !== ids(state.calls) || state.calls.length === 0) {\n',
      '  if (state.calls.length === 0) {\n',
    ],
    'a call of a reply that still streams is settled': [
      "  if (state.phase !== 'streaming' || !state.attempt.failed) {\n",
      "  if (state.phase !== 'streaming') {\n",
    ],
  }),
  ...mutationsOf('machine/fold/evolve.ts', {
    'an event of another run is folded in': [
      '  if (event.runId !== state.runId) throw illegal(state, event, `it belongs to run ${event.runId}`)\n',
      '',
    ],
    'a gap in seq is not seen': [
      '  if (event.seq !== state.seq + 1) throw illegal(state, event, `seq ${event.seq} follows ${state.seq}`)\n',
      '',
    ],
    'an epoch falls': [
      '  if (event.epoch < state.epoch) throw illegal(state, event, `epoch ${event.epoch} follows ${state.epoch}`)\n',
      '',
    ],
    'a call’s events stand in another turn': [
      '  if (event.turn !== state.turn + (startsTurn ? 1 : 0)) {\n',
      '  if (event.turn < state.turn) {\n',
    ],
    'no call is in doubt after a crash': [
      "    call.status === 'started' ? { ...call, status: 'in_doubt' as const } : call,\n",
      '    call,\n',
    ],
    'a run ends with input that has no receipt': [
      '  if (input) throw illegal(state, event, `input ${input.receipt} has no receipt`)\n',
      '',
    ],
  }),
  ...mutationsOf('machine/fold/evolve-model.ts', {
    'a second attempt starts while the first is under way': [
      '  if (again && state.attempt.failed === undefined) {\n',
      '  if (false) {\n',
    ],
    'deltas of another attempt are spliced in': [
      '  if (state.attempt.failed || event.attempt !== state.attempt.number) {\n',
      '  if (false) {\n',
    ],
    'a message drops a call that was requested': [
      "  if (asked !== kept) throw illegal(state, event, 'its calls are not those that were requested')\n",
      '',
    ],
    'an empty reply enters the history': [
      'history: parts.length === 0 ? state.history : appendMessage(state.history, message)',
      'history: appendMessage(state.history, message)',
    ],
    'usage of failed attempts is lost': ['      settledUsage: totals.usage,\n', ''],
  }),
  ...mutationsOf('machine/fold/evolve-history.ts', {
    'a summary parts a message from its results': [
      "  if (replacedMessages <= messages.length && messages[replacedMessages]?.role !== 'tool') return\n",
      '  return\n',
    ],
    'a conversation is handed over that nobody asked to hand over': [
      "  if (state.phase !== 'injecting' || state.handoff?.to !== event.to || state.handoff.back) {",
      "  if (state.phase !== 'injecting') {",
    ],
    'edits part a call from its result': [
      '  requirePaired(state, event, messages)\n  requireClosed(state, event)\n',
      '',
    ],
  }),
  ...mutationsOf('machine/fold/evolve-checks.ts', {
    'a blocked input is shown to the next run': [
      "      return { ...replaceInput(state, event), ...(action === 'block' && { blocked }) }",
      "      return action === 'block' ? { ...state, blocked } : replaceInput(state, event)",
    ],
    'a replaced answer keeps the output that was read from the other': [
      '      const { output: _read, ...next } = replaceAnswer(state, event)',
      '      const next = replaceAnswer(state, event)',
    ],
  }),
  ...mutationsOf('machine/fold/evolve-calls.ts', {
    'what child runs took does not count': [
      'withReuse(withChild(applyToolResult(state, event), event), event)',
      'withReuse(applyToolResult(state, event), event)',
    ],
  }),
  ...mutationsOf('machine/laws/invariants.ts', {
    'a request that the ledger does not rebuild passes (law 7)': [
      '  if (rebuilt === event.requestDigest) return\n  throw new LawBrokenError(\n',
      '  return\n  throw new LawBrokenError(\n',
    ],
    'a model call past a limit passes (law 9)': ['    requireWithinLimits(state, event)\n', ''],
    'a message that is not its deltas passes (law 12)': [
      "  if (event.type === 'assistant_message_finished') requireWholeMessage(state, event)\n",
      '',
    ],
    'a call starts past a limit, or once more (laws 9 and 10)': [
      "  if (event.type === 'tool_started') requireHonestStart(state, event)\n",
      '',
    ],
    'wrong totals at the end pass (law 6)': [
      "  if (event.type === 'run_finished') requireTotals(state, event)\n",
      '',
    ],
  }),
  ...mutationsOf('machine/laws/call-invariants.ts', {
    'a call is asked about with other arguments (law 13)': [
      "  if (event.type === 'approval_requested') requireAskedDigest(state, event)\n",
      '',
    ],
  }),
  ...mutationsOf('machine/messages/history.ts', {
    'a fork writes into the history that it came from': [
      'const own = store.messages.length === length ? store : copyStore(history)',
      'const own = store',
    ],
    'the digest of a history forgets what stands before the last message': [
      'store.digests[index] = digestOf([before, store.messages[index] as unknown as Json])',
      'store.digests[index] = digestOf([noMessages, store.messages[index] as unknown as Json])',
    ],
  }),
  ...mutationsOf('machine/prompt/transcript.ts', {
    'a prefix shows a model calls without results': [
      'results: calls.map((call) => call.result ?? standIn(call))',
      'results: calls.flatMap((call) => call.result ?? [])',
    ],
  }),
]
