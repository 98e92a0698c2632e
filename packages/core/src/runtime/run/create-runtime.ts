import { requireOptions } from '../../vocabulary/options/require-options.ts'
import { numberFrom } from '../../vocabulary/options/option.ts'
import type { ForkOptions } from '../fork/fork.ts'
import { suspendedRuns } from '../reading/listed-runs.ts'
import {
  requireForkOptions,
  requireInterruptedOptions,
  requireResumeOptions,
  requireRunOptions,
  requireRuntimeOptions,
} from './runtime-options-check.ts'
import type { InContext, ResumeOptions, Runtime, RuntimeOptions } from './runtime.ts'
import { RuntimeRuns } from './runtime-runs.ts'
import { runtimeSession } from './runtime-session.ts'
import { settledResult } from './settled-result.ts'

/** Puts a runtime together. */
export function createRuntime(options: RuntimeOptions): Runtime {
  requireRuntimeOptions(options)
  const { ledger } = options
  const runs = new RuntimeRuns(options)
  return {
    run(agent, input, ...[own = {}]) {
      requireRunOptions(own)
      return runs.handle(runs.start(agent, input, own))
    },
    session: (id) => runtimeSession(id, ledger, runs),
    resume<Output>(runId: string, own: ResumeOptions<Output> = {}) {
      requireResumeOptions('resume', own)
      const coordinator = runs.coordinatorFor(runId, own)
      coordinator.drive({ takeOver: true })
      return runs.handle<Output>(coordinator, own.agent)
    },
    fork<Output>(source: string, own: InContext<ForkOptions>) {
      requireForkOptions(own)
      return runs.handle<Output>(runs.fork(source, own))
    },
    async settle(runId, toolCallId, result, own = {}) {
      requireResumeOptions('settle', own)
      return await runs
        .coordinatorFor(runId, own)
        .send({ type: 'settle', toolCallId, ...settledResult(result) })
    },
    suspended: () => suspendedRuns(ledger),
    interrupted(own = {}) {
      requireInterruptedOptions(own)
      return runs.interrupted(own)
    },
    async drain(graceMs = 5_000) {
      requireOptions('drain', numberFrom(0), graceMs, 'graceMs')
      return await runs.coordinators.drain(graceMs)
    },
    idle: () => runs.coordinators.idle(),
  }
}
