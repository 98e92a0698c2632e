import { ConfigurationError } from '../../values/errors.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Agent } from '../agent/agent.ts'
import { givenInput, type RunInput } from '../session/run-input.ts'
import { sessionView } from '../session/session.ts'
import { joinedRun } from './join-run.ts'
import { requireSessionRunOptions } from './runtime-options-check.ts'
import type { InContext, RuntimeSession, SessionRunOptions } from './runtime.ts'
import type { RuntimeRuns } from './runtime-runs.ts'

/** Returns a session of a runtime, which starts its runs. Throws a `ConfigurationError` for a name that is empty or no text. */
export function runtimeSession(id: string, ledger: Ledger, runs: RuntimeRuns): RuntimeSession {
  if (typeof id !== 'string' || id === '' || !id.isWellFormed() || id.includes('\0')) {
    throw new ConfigurationError(
      'A session needs a name: a text that is not empty, such as a conversation id.',
    )
  }
  return {
    ...sessionView(ledger, id),
    async run<Output, Context>(
      agent: Agent<Output, Context>,
      input: RunInput,
      ...[given = {}]: readonly (InContext<SessionRunOptions> | undefined)[]
    ) {
      requireSessionRunOptions(given)
      const { whenBusy = 'conflict', ...options } = given
      runs.coordinators.requireOpen()
      if (whenBusy !== 'join')
        return runs.handle<Output>(runs.start(agent, input, { ...options, sessionId: id, whenBusy }))
      const { message, before } = givenInput(input)
      if (before.length > 0) {
        throw new ConfigurationError(
          `Only one message can join a run of session ${id}, and ${before.length + 1} were given: the run has its own past. Give the last one alone, or another whenBusy.`,
        )
      }
      for (;;) {
        const beginNext = (): void => runs.startLater(agent, input, { ...options, sessionId: id })
        const { inputId, mayFollow } = given
        const joining = { message, inputId, mayFollow, beginNext }
        const joined = await joinedRun(runs.waiting, runs.coordinators, id, joining)
        if (joined) return runs.handle<Output>({ coordinator: joined })
        const started = runs.start(agent, input, { ...options, sessionId: id })
        if (await started.coordinator.hasBegun()) return runs.handle<Output>(started)
      }
    },
  }
}
