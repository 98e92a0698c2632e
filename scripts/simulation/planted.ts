/** A replacement in a source file, which the loader makes: no file changes. */
interface Change {
  /** Within `packages/`. */
  readonly file: string
  readonly from: string
  readonly to: string
}

/** Faults that a simulation has to find, each planted alone. */
export const plantedFaults: Readonly<Record<string, readonly Change[]>> = {
  'a dropped result': [
    {
      file: 'core/src/machine/fold-turn.ts',
      from: "withMessage(state, { role: 'tool', results })",
      to: "withMessage(state, { role: 'tool', results: results.slice(0, Math.max(1, results.length - 1)) })",
    },
  ],
  'a result twice': [
    {
      file: 'core/src/machine/decide-signals.ts',
      from: 'return { facts: [{ ...result, ...omitUndefined({ projected, shown, child, reused, error }) }] }',
      to: 'return { facts: [result, result] }',
    },
  ],
  'two attempts spliced': [
    {
      file: 'core/src/machine/fold-turn.ts',
      from: 'drafts: [],',
      to: 'drafts: again ? state.attempt.drafts : [],',
    },
  ],
  'a stale approval taken': [
    {
      file: 'core/src/machine/decide.ts',
      from: 'const { attempt = 1, inputDigest: shown = inputDigest } = command',
      to: 'const attempt = attempts + 1, shown = inputDigest',
    },
  ],
  // Four places keep it out, each alone.
  'a late ending': [
    {
      file: 'core/src/tools/tool-call.ts',
      from: '    this.#time.stop()\n    this.#reports.unsubscribe()',
      to: '    this.#time.stop()',
    },
    {
      file: 'core/src/tools/tool-call.ts',
      from: '  next(signal: ToolSignal): void {\n    if (this.#ended) return',
      to: '  next(signal: ToolSignal): void {\n    this.#ended = false',
    },
    {
      file: 'core/src/runtime/effects.ts',
      from: 'if (inFlight.isStopped) return',
      to: '',
    },
    {
      file: 'core/src/machine/decide-signals.ts',
      from: '|| call.attempts !== attempt) return nothing',
      to: ') return nothing',
    },
  ],
  'one person counted twice': [
    {
      file: 'core/src/machine/approvals.ts',
      from: 'return other !== undefined && (by === other || toBareName(by) === toBareName(other))',
      to: 'return by === other',
    },
  ],
  'a withdrawn approval still used': [
    {
      file: 'core/src/machine/evolve.ts',
      from: 'approval_withdrawn: (state, { standing }) => withoutStanding(state, standing),',
      to: 'approval_withdrawn: (state) => state,',
    },
  ],
  'an approval that covers any input': [
    {
      file: 'core/src/machine/approvals.ts',
      from: "...(standing.for === 'equal_input' && { inputDigest }),",
      to: '',
    },
  ],
  'an edit of a session lost': [
    {
      file: 'core/src/machine/evolve.ts',
      from: 'const edited = [...before.slice(0, before.length - count), ...messages]',
      to: 'const edited = [...before, ...messages]',
    },
  ],
  'a limit off by one': [
    {
      file: 'core/src/machine/budget.ts',
      from: 'return Math.max(0, max - spent[field] - granted[field])',
      to: "return Math.max(0, max + (field === 'toolCalls' ? 1 : 0) - spent[field] - granted[field])",
    },
  ],
  'a barrier lost': [
    {
      file: 'core/src/machine/advance.ts',
      from: "if (event.type === 'tool_started') return !isHarmlessStart(event, after)",
      to: "if (event.type === 'tool_started') return false",
    },
  ],
  'an unfenced writer': [
    {
      file: 'core/src/ledger/append-rules.ts',
      from: 'if (head.epoch !== expected.epoch) {',
      to: 'if (head.epoch < expected.epoch) {',
    },
  ],
  'compaction through an open call': [
    {
      file: 'core/src/machine/compaction.ts',
      from: "while (cut > 0 && messages[cut]?.role === 'tool') cut--",
      to: '',
    },
  ],
  'a digest over the wrong transcript': [
    {
      file: 'core/src/machine/request.ts',
      from: 'history: computeHistoryDigest(state.history),',
      to: "history: '',",
    },
  ],
  'a lease that two hold': [
    {
      file: 'core/src/ledger/memory-ledger.ts',
      from: 'if (lease && lease.holder !== claim.holder && lease.holder !== claim.from)',
      to: 'if (lease && lease.holder === claim.from && lease.holder !== claim.from)',
    },
  ],
  'a wake-up overwritten': [
    {
      file: 'core/src/ledger/memory-ledger.ts',
      from: 'run.dueAt = isAsked ? 0 : (dueAt ?? undefined)',
      to: 'run.dueAt = dueAt ?? undefined',
    },
  ],
  'an approval used twice': [
    {
      file: 'core/src/machine/next-calls.ts',
      from: "filter((call) => call.recovery === 'ask')",
      to: 'filter(() => false)',
    },
    {
      file: 'core/src/machine/retry.ts',
      from: "return status === 'in_doubt' && recovery === 'rerun' && inputRemoved === undefined",
      to: "return status === 'in_doubt' && (recovery === 'rerun' || recovery === 'ask') && inputRemoved === undefined",
    },
    {
      file: 'core/src/machine/laws.ts',
      from: "if (call.status === 'in_doubt' && call.recovery !== 'rerun' && call.recovery !== 'reconcile')",
      to: "if (call.status === 'in_doubt' && call.recovery === 'report')",
    },
  ],
  "a branch that sees another's past": [
    {
      file: 'core/src/runtime/session.ts',
      from: 'const state = runId && (await loadState(ledger, runId, atSeq))',
      to: 'const state = runId && (await loadState(ledger, runId))',
    },
    {
      file: 'core/src/runtime/session.ts',
      from: 'if (atSeq === undefined || state.seq === atSeq) return state',
      to: 'if (atSeq === undefined || state.seq >= atSeq) return state',
    },
  ],
  'a cursor that skips': [
    {
      file: 'core/src/ledger/memory-ledger.ts',
      from: 'let count = after === undefined ? 0 : store.countUpTo(after)',
      to: 'let count = after === undefined ? 0 : store.countUpTo(after) + 1',
    },
  ],
  'a fork that spends an approval': [
    {
      file: 'core/src/machine/retry.ts',
      from: "return approvedSeq !== undefined && parent?.relation === 'fork' && approvedSeq <= parent.seq",
      to: 'return approvedSeq === undefined && parent === undefined && approvedSeq !== undefined',
    },
  ],
  'a redacted call that runs': [
    {
      file: 'core/src/machine/fold-turn.ts',
      from: '...(event.removed && { inputRemoved: true as const }),',
      to: '',
    },
  ],
  'a lease that a dead process keeps': [
    {
      file: 'core/src/ledger/memory-ledger.ts',
      from: 'return lease && leftMs > 0 ? { holder: lease.holder, leftMs } : undefined',
      to: 'return lease ? { holder: lease.holder, leftMs } : undefined',
    },
  ],
  'a parked run never woken': [
    {
      file: 'core/src/runtime/drive-session.ts',
      from: 'return { wakeAt: findWakeTime(state), children }',
      to: 'return { wakeAt: undefined, children }',
    },
  ],
  'a wake of later forgotten': [
    {
      file: 'engines/src/worker.ts',
      from: 'if (wakeAt !== undefined) await engine.wake({ ...about, runId, at: wakeAt })',
      to: '',
    },
  ],
  'a schedule that fires twice': [
    {
      file: 'core/src/runtime/schedules.ts',
      from: 'const runId = deriveRunId(idempotencyKey)',
      to: 'const runId = parts.newId()',
    },
  ],
  'a background result lost': [
    {
      file: 'core/src/machine/fold-turn.ts',
      from: 'if (message === undefined) return next',
      to: 'return next',
    },
  ],
  'a background call forgotten': [
    {
      file: 'core/src/machine/evolve.ts',
      from: 'const doubted = beside ? { ...next, background: beside } : next',
      to: 'const { background: _forgotten, ...doubted } = next',
    },
  ],
  'a background call started twice': [
    {
      file: 'core/src/machine/background.ts',
      from: 'if (isRerun(call) && !isHeldWrite(state, call) && !state.cancel)',
      to: 'if (!isHeldWrite(state, call) && !state.cancel)',
    },
    {
      file: 'core/src/machine/laws.ts',
      from: "if (call.status === 'in_doubt' && call.recovery !== 'rerun' && call.recovery !== 'reconcile')",
      to: "if (call.status === 'in_doubt' && call.recovery === 'ask')",
    },
  ],
  'an approval about somebody else': [
    {
      file: 'core/src/runtime/session.ts',
      from: 'const standing = before && isAboutSame ?',
      to: 'const standing = before ?',
    },
  ],
  'a refusal that is not true': [
    {
      file: 'core/src/machine/decide.ts',
      from: 'if (now !== undefined && max > now) {',
      to: 'if (now !== undefined && max > now + 1) {',
    },
  ],
  'a context lent': [
    {
      file: 'core/src/runtime/run-context.ts',
      from: 'this.context = await contextOf(toRecordedRun(state))',
      to: 'this.context = (contextOf as { lent?: unknown }).lent ??= await contextOf(toRecordedRun(state))',
    },
  ],
}
