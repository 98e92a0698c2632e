import { type Mutation, mutationsOf } from './mutation.ts'

/** Faults of the shell: what it starts, appends, publishes and forgets. */
export const runtimeMutations: readonly Mutation[] = [
  ...mutationsOf('runtime/drive/run-loop.ts', {
    'tools and models start before the append is done': [
      '      await ledger.append(runId',
      '      void ledger.append(runId',
    ],
    'events are shown before they are in the ledger': [
      '    if (batch.events.length > 0 && !isUnchanged) {\n',
      '    for (const event of batch.events) live.next(event)\n    if (batch.events.length > 0 && !isUnchanged) {\n',
    ],
    'commands stay in the inbox': ['        consumedInboxKeys: consumed,\n', ''],
    'a run is taken over without raising its epoch': [
      'this.epoch = (await ledger.acquire(runId)).epoch',
      'this.epoch = found.epoch',
    ],
    'a run is taken by whoever cannot drive it': ['    requireDrivable(found, this.#drive)\n', ''],
    'what came in between is not read': [
      'const state = await this.#load()\n    if (state.epoch',
      'const state = found\n    if (state.epoch',
    ],
    'a command is decided as often as the inbox is read': ['      this.#seen.add(key)\n', ''],
    'a run stops while commands are on their way': [
      '    await this.#drive.acknowledgements.allDelivered()\n    await this.#readInbox()\n',
      '',
    ],
    'anything in the inbox is a command': [
      '      if (fault) this.#refuseMalformed(key, fault)\n',
      '      if (false) this.#refuseMalformed(key, fault!)\n',
    ],
    'what another process has appended is not shown': [
      '      live.next(event)\n    }\n    if (this.#state',
      '    }\n    if (this.#state',
    ],
    'a command that another process has taken is waited for': [
      '    if (lost.length > 0) await this.#rejectLost(lost)\n',
      '',
    ],
  }),
  ...mutationsOf('runtime/drive/durability.ts', {
    'the barrier is dropped': [
      "eventCatalogue[type].durability === 'barrier') ? 'barrier' : 'lazy'",
      "eventCatalogue[type].durability === 'barrier') ? 'lazy' : 'lazy'",
    ],
  }),
  ...mutationsOf('runtime/drive/run-coordinator.ts', {
    'a relieved handle takes the run back': [
      '    if (this.#failure) return Promise.reject(this.#failure.error)\n',
      '',
    ],
    'a run is driven twice in one process': [
      '    if (this.#loop && this.#driveSession) return this.#driveSession\n',
      '',
    ],
    'a command that comes while the run stops is forgotten': [
      'while (this.#acknowledgements.hasPending && state.phase',
      'while (false && state.phase',
    ],
  }),
  ...mutationsOf('runtime/effects/effects.ts', {
    'an effect is started twice': ['if (!draining && !this.#started.has(effect.key)) {', 'if (!draining) {'],
    'what nobody wants any more continues': [
      '      this.#inFlight.delete(key)\n      effect.stop()\n',
      '      this.#inFlight.delete(key)\n',
    ],
    'a drained run begins something new': ['if (!draining && !this.#started', 'if (!this.#started'],
    'a tool is not told that it should stop': [
      '        this.#inFlight.get(effect.key)?.cancel?.(effect.cancelReason)\n',
      '',
    ],
  }),
  ...mutationsOf('runtime/effects/tool-effect.ts', {
    'a tool ends twice': [
      'const onSignal = (signal: ToolSignal): void => {\n    if (ended) return\n',
      'const onSignal = (signal: ToolSignal): void => {\n',
    ],
    'a tool gives outcomes that are not its own': [
      '    if (!reportable.has(signal.outcome)) {\n',
      '    if (false) {\n',
    ],
    'a tool is asked to stop again and again': ['    if (asked) return\n', ''],
    'an error after the result counts': [
      'outcome: Outcome, content: readonly ResultPart[]): void => {\n    if (ended) return\n',
      'outcome: Outcome, content: readonly ResultPart[]): void => {\n',
    ],
    'a tool that takes too long is not given up': ["      end('timed_out', textContent('timed_out'))\n", ''],
  }),
  ...mutationsOf('runtime/effects/model-effect.ts', {
    'a model is heard after its end': [
      '      next: (signal) => {\n        if (ended) return\n',
      '      next: (signal) => {\n',
    ],
    'a broken report of a model is taken': [
      '        if (fault) return fail(brokenAdapter(model, fault))\n',
      '',
    ],
  }),
  ...mutationsOf('runtime/reading/event-source.ts', {
    'a subscriber hears events twice': ['      if (event.seq <= seq) return\n', ''],
    'a subscriber misses what is appended while it reads': [
      'next: (event) => (caughtUp ? emit(event) : waiting.push(event)),',
      'next: (event) => (caughtUp ? emit(event) : undefined),',
    ],
    'a stream never ends': ["      if (event.type === 'run_finished') subscriber.complete()\n", ''],
  }),
  ...mutationsOf('runtime/reading/isolated.ts', {
    'a subscriber that throws is thrown at everyone': [
      '        failed = true\n        this.#report(thrown)\n',
      '        failed = true\n        throw thrown\n',
    ],
    'what is piped is not isolated': [
      'const lifted = new IsolatedObservable<R>(this.#report)',
      'const lifted = new Observable<R>()',
    ],
  }),
  ...mutationsOf('runtime/drive/coordinator-registry.ts', {
    'a subscriber goes deaf when the handle is collected': ['    this.#watched.add(watched)\n', ''],
    'every handle drives its run by itself': ['    if (there) return there\n', ''],
  }),
  ...mutationsOf('runtime/effects/call-check.ts', {
    'a verdict that is none lets a call run': [
      "  if (faultOf(verdictSchema, verdict)) throw new TypeError('its verdict is none of run, ask and refuse')\n",
      '',
    ],
  }),
  ...mutationsOf('runtime/drive/steady-clock.ts', {
    'time falls with the host’s clock': ['      behind = Math.max(behind, last - time)\n', ''],
  }),
  ...mutationsOf('runtime/run/parent-runs.ts', {
    'a decision is forwarded to a child run of another run': [
      '      if (!(await isDescendantOf(ledger, childId, root))) return false\n',
      '',
    ],
    'an answered child run is not resumed': [
      '        await coordinator.resume({ takeOver }).catch(unlessDrivenElsewhere)\n',
      '',
    ],
    'a child run that died is left where it is': [
      '  if (!isSuspended(state)) return takeOver\n',
      '  if (!isSuspended(state)) return false\n',
    ],
  }),
  ...mutationsOf('runtime/session/session.ts', {
    'a run begins beside another of its session': [
      "  if (whenBusy === 'wait') return await untilEnded(state, { ...waiting, quietMs })\n",
      '  return state\n',
    ],
    'edits of another past are taken': [
      '  if (of !== source?.runId) throw editedMeanwhile(of, source)\n',
      '',
    ],
  }),
  ...mutationsOf('runtime/fork/recorded-results.ts', {
    'a fork that has gone its own way is still served': ['    if (fork?.diverged) return undefined\n', ''],
    'a fork is served what came of another input': [
      "    if (event.type === 'approval_decided' && event.input) digests.set(event.toolCallId, digestOf(event.input))\n",
      '',
    ],
    'a fork is served what the machine itself said of a call': [
      "return durationMs !== undefined || outcome === 'success' || outcome === 'failed'",
      'return true',
    ],
  }),
  ...mutationsOf('runtime/fork/fork.ts', {
    'a fork leaves a call in doubt whose end is on record': [
      '  record(await resultsUnderWay(ledger, { state, source: before }))\n',
      '',
    ],
  }),
  ...mutationsOf('memory-ledger/append-rules.ts', {
    'an id is taken that stores keep as another': ['  requireStorableNames(runId, events)\n', ''],
  }),
]
